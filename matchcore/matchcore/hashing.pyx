# cython: language_level=3
"""The secrets of the keyed hashes: drawn once per process, never shown.

The functions themselves are inline, in hashing.pxd.
"""

import os

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef uint64_t[4] _secret
cdef uint64_t[MULTIPLIERS] _multipliers


cdef const uint64_t* hash_secret() noexcept nogil:
    return _secret


cdef const uint64_t* hash_multipliers() noexcept nogil:
    return _multipliers


def _draw() -> None:
    cdef bytes drawn = os.urandom(sizeof(_secret) + sizeof(_multipliers))
    cdef int i
    memcpy(_secret, <const char*> drawn, sizeof(_secret))
    memcpy(_multipliers, <const char*> drawn + sizeof(_secret), sizeof(_multipliers))
    for i in range(4):
        _secret[i] |= 1  # odd: multiplication by it loses nothing
    for i in range(MULTIPLIERS):
        _multipliers[i] |= 1


_draw()
