# Asking the pool: which columns match a topic.

from matchcore.allocator cimport Allocator, Numbers
from matchcore.pool cimport Pool
from matchcore.topic cimport Topic

# Pushes the slots of the columns that match. -1: no memory. The scratch is the topic's. With
# `first_only` one at most, and the heaviest block is looked at before all others.
cdef int pool_match(
    const Pool* pool, Topic* topic, bint first_only, Numbers* found, Allocator* allocator
) noexcept nogil
