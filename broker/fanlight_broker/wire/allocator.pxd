# Memory that is not a Python object's: every buffer of wire and of the lanes is asked for here.
#
# It is malloc with two additions, for tests: the blocks in use are counted, so that a leak is a number, and `failures`
# makes each allocation of an operation fail once. Both cost a few instructions where malloc costs a hundred.
#
# matchcore has counted memory of its own, of another kind (bytes for each index, huge pages). wire and matchcore are
# neighbours and do not know each other, and a package below both would be a distribution for these few lines.
#
# A call that gets no memory returns NULL and leaves the old block as it was: the caller undoes its steps and raises.

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc, realloc

cdef struct Allocator:
    Py_ssize_t blocks         # in use
    int64_t allowance         # calls that still get memory before some do not; -1: all of them
    int64_t failures          # how many do not; then the others get it again
    int64_t refusals          # so far

cdef Allocator allocator

cdef void refuse() noexcept

cdef inline bint refused() noexcept:
    if allocator.allowance < 0:
        return False
    if allocator.allowance > 0:
        allocator.allowance -= 1
        return False
    refuse()
    return True

cdef inline void* allocate(size_t size) noexcept:
    cdef void* block = NULL if refused() else malloc(size)
    allocator.blocks += block is not NULL
    return block

cdef inline void* allocate_zeros(size_t count, size_t size) noexcept:
    cdef void* block = NULL if refused() else calloc(count, size)
    allocator.blocks += block is not NULL
    return block

cdef inline void* reallocate(void* old, size_t size) noexcept:
    """`size` is not 0. Making a block smaller may fail, too."""
    cdef void* block = NULL if refused() else realloc(old, size)
    allocator.blocks += old is NULL and block is not NULL
    return block

cdef inline void deallocate(void* block) noexcept:
    if block is not NULL:
        allocator.blocks -= 1
        free(block)
