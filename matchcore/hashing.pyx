# cython: language_level=3
"""The secret of the keyed hash: drawn once per process, never shown.

The functions themselves are inline, in hashing.pxd.
"""

import os

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef uint64_t[4] _secret


cdef const uint64_t* hash_secret() noexcept nogil:
    return _secret


def _draw() -> None:
    cdef bytes drawn = os.urandom(sizeof(_secret))
    cdef int i
    memcpy(_secret, <const char*> drawn, sizeof(_secret))
    for i in range(4):
        _secret[i] |= 1  # odd: multiplication by it loses nothing


_draw()
