# Does a filter take a topic? Word by word, for those that rows, records and postings do not decide.

from libc.stdint cimport uint32_t

# `tokens`: canonical; `prefix` and `suffix` as in positions.pxd. `ids`: the topic's word ids, OTHER for words no
# filter names. Everything but the `$` rule.
cdef bint tokens_take(
    const uint32_t* tokens, uint32_t size, uint32_t prefix, uint32_t suffix, bint has_many,
    const uint32_t* ids, uint32_t count
) noexcept nogil
