# cython: language_level=3, annotation_typing=False
"""The topics of one match_many, checked once, so that they can be read without the GIL. See topics.pxd."""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc

from matchcore.syntax cimport view_of


cdef class Topics:
    def __dealloc__(self) -> None:
        free(self.views)


cdef Topics take_topics(object topics, object offsets, object syntax):
    """Raises TypeError and ValueError for what cannot be read; `syntax` is a number."""
    if offsets is None:
        return _from_sequence(topics, syntax)
    return _from_buffers(topics, offsets)


cdef Topics _from_sequence(object topics, uint32_t syntax):
    cdef Topics made = Topics.__new__(Topics)
    cdef Py_ssize_t i
    if isinstance(topics, (str, bytes)):
        raise TypeError(f"match_many takes several topics, not one {type(topics).__name__}")
    made.held = tuple(topics)
    made.count = len(made.held)
    made.views = <View*> malloc((made.count + 1) * sizeof(View))
    if made.views == NULL:
        raise MemoryError()
    for i in range(made.count):
        view_of(made.held[i], &made.views[i], syntax, False)
    return made


cdef Topics _from_buffers(object data, object offsets):
    cdef Topics made = Topics.__new__(Topics)
    cdef const unsigned char[::1] raw
    cdef const int64_t[::1] wide
    cdef const int32_t[::1] narrow
    cdef int64_t size
    import numpy  # here: most users of matchcore ask for one topic at a time
    array = numpy.asarray(offsets)
    if array.ndim != 1 or array.dtype not in (numpy.int64, numpy.int32):
        raise TypeError(f"offsets must be int64 or int32 in one dimension, not {array.dtype} in {array.ndim}")
    if len(array) == 0:
        raise ValueError("offsets has one more entry than there are topics: at least 1")
    array = numpy.ascontiguousarray(array)
    size = memoryview(data).nbytes
    octets = numpy.frombuffer(data, dtype=numpy.uint8) if size != 0 else numpy.empty(0, dtype=numpy.uint8)
    if array[0] < 0 or array[-1] > size or (array[1:] < array[:-1]).any():
        raise ValueError(f"offsets must ascend within 0..{size}, the size of the topics in bytes")
    made.count = len(array) - 1
    made.data_owner = octets
    made.offsets_owner = array
    made.data = b""
    if size != 0:
        raw = octets
        made.data = <const char*> &raw[0]
    if array.dtype == numpy.int64:
        wide = array
        made.wide = &wide[0]
    else:
        narrow = array
        made.narrow = &narrow[0]
    return made
