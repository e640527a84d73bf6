# Asking the pool: which columns match a topic.

from libc.stdint cimport uint32_t

from matchcore.heap cimport Numbers
from matchcore.pool cimport Pool

# Pushes the columns that match the topic `ids` (word ids, OTHER for unknown words). -1: no memory.
cdef int pool_match(
    Pool* pool, const uint32_t* ids, uint32_t count, bint dollar, bint first_only, Numbers* found
) noexcept nogil
