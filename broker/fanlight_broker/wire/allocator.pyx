# cython: language_level=3
"""The memory of buffers, for tests: how many blocks are in use, and which allocation fails. Drawn in allocator.pxd."""

allocator.blocks = 0
allocator.allowance = -1


def blocks_in_use():
    """Blocks that were allocated and not given back."""
    return allocator.blocks


def fail_after(int64_t allocations, int64_t failures=1):
    """Let this many allocations succeed, and the next `failures` fail; -1: none fails."""
    allocator.allowance = allocations
    allocator.failures = failures
    allocator.refusals = 0


def refusals():
    """Allocations that have failed since `fail_after`."""
    return allocator.refusals


cdef void refuse() noexcept:
    allocator.refusals += 1
    allocator.failures -= 1
    if allocator.failures <= 0:
        allocator.allowance = -1
