# The file operations of the log: one indirect call each, without the GIL.
#
# Each returns a count or a descriptor of 0 and more, or -errno: never an exception, for the writer thread has no GIL.
# Tests put a `PythonDisk` in its place, which records, fails, or keeps what a disk with a cache may keep.

from libc.stdint cimport int64_t, uint64_t

cdef class Disk:
    cdef int open_file(self, const char* path, bint create) noexcept nogil
    cdef int close_file(self, int fd) noexcept nogil
    cdef int write(self, int fd, const char* data, size_t size, uint64_t offset) noexcept nogil
    cdef Py_ssize_t read(self, int fd, char* data, size_t size, uint64_t offset) noexcept nogil
    cdef int sync(self, int fd) noexcept nogil
    cdef int truncate(self, int fd, uint64_t size) noexcept nogil
    cdef int64_t size(self, int fd) noexcept nogil
    cdef int link(self, const char* path, const char* target) noexcept nogil
    cdef int rename(self, const char* path, const char* target) noexcept nogil
    cdef int unlink(self, const char* path) noexcept nogil
    cdef int sync_folder(self, const char* path) noexcept nogil

cdef class ReadOnlyDisk(Disk):
    pass

cdef class PythonDisk(Disk):
    cdef int asked(self, name, path, data, offset) noexcept
    cdef int report_open(self, path, fd) noexcept

cdef int checked(int64_t result, path) except -1
