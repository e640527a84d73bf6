# Counted memory: every byte of an index is allocated here, so that `nbytes` is exact.
#
#     under 2 MiB   malloc; the requested size is counted, without malloc's rounding and headers
#     from 2 MiB    pages of its own, from an address that is a multiple of 2 MiB and advised to be huge:
#                   a match at a million filters touches tens of places far apart, and with pages of 4 kB
#                   each would miss the processor's table of pages too. Grown by moving pages, not bytes.
#
# A call that cannot get memory returns NULL and leaves the old block as it was: the caller undoes its own
# steps and raises MemoryError, and the index is unchanged. A block made smaller so that it falls below 2 MiB
# needs memory, too, because malloc takes it over: after NULL the caller keeps the old block and its old size.
# Any other shrinking succeeds.
#
# `allowance` counts down the calls that need memory and still get it (-1: no limit). Only tests set it, to make each
# allocation of an insert fail once.

from libc.stdint cimport int64_t, uint32_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>

    #if defined(__linux__)
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <sys/mman.h>
    #define MATCHCORE_HUGE ((size_t) 2 << 20)
    #define MATCHCORE_PAGE ((size_t) 4096)

    /* The flags are Linux's own; a strict C library hides their names. */
    #ifndef MREMAP_MAYMOVE
    #define MREMAP_MAYMOVE 1
    #define MREMAP_FIXED 2
    extern void *mremap(void *, size_t, size_t, int, ...);
    #endif
    #ifndef MADV_HUGEPAGE
    #define MADV_HUGEPAGE 14
    #endif

    static inline size_t matchcore_allocated_size(size_t size) {
        return size < MATCHCORE_HUGE ? size : (size + MATCHCORE_PAGE - 1) & ~(MATCHCORE_PAGE - 1);
    }

    /* Addresses for `size` bytes, the first a multiple of 2 MiB. */
    static inline char *matchcore_reserve(size_t size, int access) {
        char *at = (char *) mmap(NULL, size + MATCHCORE_HUGE, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        size_t before;
        if (at == (char *) MAP_FAILED)
            return NULL;
        before = (size_t) (-(intptr_t) at) & (MATCHCORE_HUGE - 1);
        if (before != 0)
            munmap(at, before);
        munmap(at + before + size, MATCHCORE_HUGE - before);
        return at + before;
    }

    static inline void *matchcore_resize(void *old, size_t old_size, size_t size) {
        char *at;
        if (size < MATCHCORE_HUGE && old_size < MATCHCORE_HUGE)
            return realloc(old, size);
        if (size < MATCHCORE_HUGE) {
            at = (char *) malloc(size);
            if (at == NULL)
                return NULL;
            if (old != NULL)
                memcpy(at, old, size);
            munmap(old, matchcore_allocated_size(old_size));
            return at;
        }
        size = matchcore_allocated_size(size);
        if (old_size < MATCHCORE_HUGE) {
            at = matchcore_reserve(size, PROT_READ | PROT_WRITE);
            if (at == NULL)
                return NULL;
            madvise(at, size, MADV_HUGEPAGE);
            if (old != NULL)
                memcpy(at, old, old_size);
            free(old);
            return at;
        }
        old_size = matchcore_allocated_size(old_size);
        if (size == old_size || mremap(old, old_size, size, 0) != MAP_FAILED)
            return old;
        at = matchcore_reserve(size, PROT_NONE);
        if (at == NULL)
            return NULL;
        if (mremap(old, old_size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) {
            munmap(at, size);
            return NULL;
        }
        return at;
    }

    static inline int matchcore_leaves_pages(size_t old_size, size_t size) {
        return old_size >= MATCHCORE_HUGE && size < MATCHCORE_HUGE;
    }

    static inline void matchcore_release(void *old, size_t size) {
        if (size < MATCHCORE_HUGE)
            free(old);
        else
            munmap(old, matchcore_allocated_size(size));
    }
    #else
    static inline size_t matchcore_allocated_size(size_t size) { return size; }
    static inline void *matchcore_resize(void *old, size_t old_size, size_t size) {
        (void) old_size;
        return realloc(old, size);
    }
    static inline int matchcore_leaves_pages(size_t old_size, size_t size) {
        (void) old_size;
        (void) size;
        return 0;
    }
    static inline void matchcore_release(void *old, size_t size) { (void) size; free(old); }
    #endif

    /* `size` bytes of zeros; fresh pages are zero already. */
    static inline void matchcore_clear(void *block, size_t size) {
    #if defined(__linux__)
        if (size >= MATCHCORE_HUGE)
            return;
    #endif
        memset(block, 0, size);
    }

    #if defined(__GNUC__)
    #define matchcore_prefetch(at) __builtin_prefetch(at)
    #else
    #define matchcore_prefetch(at) ((void) (at))
    #endif
    """
    size_t allocated_size "matchcore_allocated_size" (size_t size) noexcept nogil
    void* resize_block "matchcore_resize" (void* old, size_t old_size, size_t size) noexcept nogil
    bint leaves_pages "matchcore_leaves_pages" (size_t old_size, size_t size) noexcept nogil
    void release_block "matchcore_release" (void* old, size_t size) noexcept nogil
    void clear_new_block "matchcore_clear" (void* block, size_t size) noexcept nogil
    void prefetch "matchcore_prefetch" (const void* at) noexcept nogil


cdef struct Allocator:
    size_t bytes
    int64_t allowance


# Resizes `old` (`old_size` bytes, NULL when 0) to `new_size` bytes; 0 frees it. NULL: no memory, and the block is
# unchanged.
cdef inline void* reallocate(Allocator* allocator, void* old, size_t old_size, size_t new_size) noexcept nogil:
    cdef void* block
    if new_size == 0:
        if old != NULL:
            release_block(old, old_size)
        allocator.bytes -= allocated_size(old_size)
        return NULL
    if allocator.allowance >= 0 and (new_size > old_size or leaves_pages(old_size, new_size)):
        if allocator.allowance == 0:
            return NULL
        allocator.allowance -= 1
    block = resize_block(old, old_size, new_size)
    if block == NULL:
        if new_size > old_size or leaves_pages(old_size, new_size):
            return NULL
        block = old  # it could not be made smaller: it stays larger than necessary
    allocator.bytes += allocated_size(new_size)
    allocator.bytes -= allocated_size(old_size)
    return block


cdef inline void* allocate(Allocator* allocator, size_t size) noexcept nogil:
    return reallocate(allocator, NULL, 0, size)


# `size` bytes of zeros.
cdef inline void* allocate_zeros(Allocator* allocator, size_t size) noexcept nogil:
    cdef void* block = reallocate(allocator, NULL, 0, size)
    if block != NULL:
        clear_new_block(block, size)
    return block


cdef inline void deallocate(Allocator* allocator, void* block, size_t size) noexcept nogil:
    if block != NULL:
        reallocate(allocator, block, size, 0)


# A growable array of 32-bit numbers: ids, slots, nodes.
#
#     items [ 7 | 9 | 12 |  .  |  .  ]
#             <- size ->   capacity 5
cdef struct Numbers:
    uint32_t* items
    size_t size
    size_t capacity


cdef inline int numbers_reserve(Allocator* allocator, Numbers* numbers, size_t room) noexcept nogil:
    cdef size_t capacity = numbers.capacity
    cdef uint32_t* items
    if room <= capacity:
        return 0
    if capacity < 16:
        capacity = 16
    while capacity < room:
        capacity += capacity // 2
    items = <uint32_t*> reallocate(
        allocator, numbers.items, numbers.capacity * sizeof(uint32_t), capacity * sizeof(uint32_t)
    )
    if items == NULL:
        return -1
    numbers.items = items
    numbers.capacity = capacity
    return 0


cdef inline int numbers_push(Allocator* allocator, Numbers* numbers, uint32_t item) noexcept nogil:
    if numbers.size == numbers.capacity and numbers_reserve(allocator, numbers, numbers.size + 1) < 0:
        return -1
    numbers.items[numbers.size] = item
    numbers.size += 1
    return 0


cdef inline void numbers_free(Allocator* allocator, Numbers* numbers) noexcept nogil:
    deallocate(allocator, numbers.items, numbers.capacity * sizeof(uint32_t))
    numbers.items = NULL
    numbers.size = numbers.capacity = 0
