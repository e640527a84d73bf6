# cython: language_level=3
"""What is kept of the exchanges' answers, and is right as long as it is `valid`."""


cdef class KeptAnswer:
    """Of the exchanges: what messages reach."""
