# Asking the buckets: which filters match a topic.

from libc.stdint cimport uint32_t

from matchcore.buckets cimport Buckets
from matchcore.heap cimport Heap, Numbers
from matchcore.topic cimport Topic

# Pushes the slots that match; with `first_only` at most one, and its class into `hit` (else NONE). -1: no
# memory.
cdef int buckets_match(
    const Buckets* buckets, Topic* topic, bint first_only, Numbers* found, Heap* heap, uint32_t* hit
) noexcept nogil
