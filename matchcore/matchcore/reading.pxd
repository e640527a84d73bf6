# A topic read: its text to word ids, in one pass, as a match needs them.
#
#     "site/17/floor"   separators 4 7       -> where the words are, sixteen bytes a step
#                       each word: two numbers -> hash -> dictionary -> id, positions, rows
#                                                  \-> summed up: the hash of all, for the exact tier

from libc.stdint cimport uint32_t, uint64_t

from matchcore.syntax cimport Fault, Limits
from matchcore.topic cimport Topic
from matchcore.words cimport Words

# Fills in ids, positions, rows, count, dollar and hash; their number, or -1 with `fault` filled in. Without
# `words` (NULL) only count and hash. `secret` is that under which the words are kept.
cdef int topic_read(
    Topic* topic, const Words* words, const uint64_t* secret, const char* text, size_t size, uint32_t syntax,
    const Limits* limits, Fault* fault
) noexcept nogil
