# The topics of one match_many: a sequence of str and bytes, or bytes end to end with offsets.
#
#     data     s t o c k . a | s t o c k . b c | ...        offsets   0  7  15  ...      (as Arrow has them)

from libc.stdint cimport int32_t, int64_t

from matchcore.syntax cimport View


cdef class Topics:
    cdef:
        Py_ssize_t count
        tuple held               # a sequence's own, so that they live as long
        View* views              # of the sequence; NULL: offsets
        object data_owner
        object offsets_owner
        const char* data
        const int64_t* wide      # offsets, one of the two
        const int32_t* narrow

    cdef inline View at(self, Py_ssize_t i) noexcept nogil:
        cdef View view
        if self.views != NULL:
            return self.views[i]
        view.is_str = False
        if self.wide != NULL:
            view.start = self.data + self.wide[i]
            view.size = <size_t> (self.wide[i + 1] - self.wide[i])
        else:
            view.start = self.data + self.narrow[i]
            view.size = <size_t> (self.narrow[i + 1] - self.narrow[i])
        return view


cdef Topics take_topics(object topics, object offsets, object syntax)
