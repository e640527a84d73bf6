# cython: language_level=3
"""The file operations of the log: see disk.pxd."""

import os

from libc.errno cimport EINTR, EIO, ENOSPC, EROFS, errno
from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <stdio.h>
    #include <sys/stat.h>
    #include <unistd.h>

    static int fanlight_open(const char *path, int create) {
        return open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0640);
    }
    static int fanlight_open_to_read(const char *path) {
        return open(path, O_RDONLY | O_CLOEXEC);
    }
    static int fanlight_sync(int fd) {
    #ifdef __APPLE__
        return fcntl(fd, F_FULLFSYNC);  /* fsync there does not reach the disk */
    #else
        return fdatasync(fd);
    #endif
    }
    static int fanlight_sync_folder(const char *path) {
        int result, error, fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return -1;
        result = fsync(fd);
        error = errno;
        close(fd);
        errno = error;
        return result;
    }
    static long long fanlight_size(int fd) {
        struct stat found;
        return fstat(fd, &found) ? -1 : (long long) found.st_size;
    }
    """
    int c_open "fanlight_open" (const char* path, bint create) nogil
    int c_open_to_read "fanlight_open_to_read" (const char* path) nogil
    int c_sync "fanlight_sync" (int fd) nogil
    int c_sync_folder "fanlight_sync_folder" (const char* path) nogil
    int64_t c_size "fanlight_size" (int fd) nogil
    int c_close "close" (int fd) nogil
    int c_truncate "ftruncate" (int fd, int64_t size) nogil
    int c_link "link" (const char* path, const char* target) nogil
    int c_rename "rename" (const char* path, const char* target) nogil
    int c_unlink "unlink" (const char* path) nogil
    Py_ssize_t pwrite(int fd, const void* data, size_t size, int64_t offset) nogil
    Py_ssize_t pread(int fd, void* data, size_t size, int64_t offset) nogil


cdef int checked(int64_t result, path) except -1:
    """Raise the OSError of a negative result."""
    if result < 0:
        raise OSError(<int> -result, os.strerror(<int> -result), path)
    return 0


cdef class Disk:
    """The disk of the operating system."""

    cdef int open_file(self, const char* path, bint create) noexcept nogil:
        """Open for reading and writing; `create`: it must not exist yet."""
        cdef int fd = c_open(path, create)
        return fd if fd >= 0 else -errno

    cdef int close_file(self, int fd) noexcept nogil:
        return 0 if c_close(fd) == 0 else -errno

    cdef int write(self, int fd, const char* data, size_t size, uint64_t offset) noexcept nogil:
        """All of it, or an error."""
        cdef Py_ssize_t done
        while size > 0:
            done = pwrite(fd, data, size, <int64_t> offset)
            if done > 0:
                data += done
                size -= done
                offset += done
            elif done == 0:
                return -ENOSPC
            elif errno != EINTR:
                return -errno
        return 0

    cdef Py_ssize_t read(self, int fd, char* data, size_t size, uint64_t offset) noexcept nogil:
        """Bytes read: fewer than `size` only at the end of the file."""
        cdef Py_ssize_t done, total = 0
        while <size_t> total < size:
            done = pread(fd, data + total, size - total, <int64_t> (offset + total))
            if done == 0:
                break
            if done > 0:
                total += done
            elif errno != EINTR:
                return -errno
        return total

    cdef int sync(self, int fd) noexcept nogil:
        """What was written survives a power cut, as far as the disk keeps its word."""
        return 0 if c_sync(fd) == 0 else -errno

    cdef int truncate(self, int fd, uint64_t size) noexcept nogil:
        return 0 if c_truncate(fd, <int64_t> size) == 0 else -errno

    cdef int64_t size(self, int fd) noexcept nogil:
        cdef int64_t found = c_size(fd)
        return found if found >= 0 else -errno

    cdef int link(self, const char* path, const char* target) noexcept nogil:
        return 0 if c_link(path, target) == 0 else -errno

    cdef int rename(self, const char* path, const char* target) noexcept nogil:
        return 0 if c_rename(path, target) == 0 else -errno

    cdef int unlink(self, const char* path) noexcept nogil:
        return 0 if c_unlink(path) == 0 else -errno

    cdef int sync_folder(self, const char* path) noexcept nogil:
        """Names made, changed and removed in a folder survive a power cut."""
        return 0 if c_sync_folder(path) == 0 else -errno


cdef class ReadOnlyDisk(Disk):
    """The same for reading only: whatever would change something fails with EROFS."""

    cdef int open_file(self, const char* path, bint create) noexcept nogil:
        cdef int fd = -EROFS if create else c_open_to_read(path)
        return -errno if fd == -1 else fd

    cdef int write(self, int fd, const char* data, size_t size, uint64_t offset) noexcept nogil:
        return -EROFS

    cdef int sync(self, int fd) noexcept nogil:
        return -EROFS

    cdef int truncate(self, int fd, uint64_t size) noexcept nogil:
        return -EROFS

    cdef int link(self, const char* path, const char* target) noexcept nogil:
        return -EROFS

    cdef int rename(self, const char* path, const char* target) noexcept nogil:
        return -EROFS

    cdef int unlink(self, const char* path) noexcept nogil:
        return -EROFS

    cdef int sync_folder(self, const char* path) noexcept nogil:
        return -EROFS


cdef class PythonDisk(Disk):
    """A disk whose operations are asked of Python: `operate` is called before each, and may raise OSError.

    What `operate` returns is ignored; the real operation follows.
    """

    def operate(self, name, path, data, offset):
        """About to do `name` to `path`: a path, or a descriptor. `data`: bytes, a size, or the second path."""

    def opened(self, path, fd):
        """This descriptor is the file's from now on."""

    cdef int open_file(self, const char* path, bint create) noexcept nogil:
        cdef int result
        with gil:
            result = self.asked("create" if create else "open", path, None, 0)
            if result == 0:
                result = Disk.open_file(self, path, create)
            if result >= 0:
                self.report_open(path, result)
        return result

    cdef int close_file(self, int fd) noexcept nogil:
        with gil:
            self.asked("close", fd, None, 0)
        return Disk.close_file(self, fd)

    cdef int write(self, int fd, const char* data, size_t size, uint64_t offset) noexcept nogil:
        cdef int result
        with gil:
            result = self.asked("write", fd, data[:size], offset)
        return result if result < 0 else Disk.write(self, fd, data, size, offset)

    cdef Py_ssize_t read(self, int fd, char* data, size_t size, uint64_t offset) noexcept nogil:
        cdef int result
        with gil:
            result = self.asked("read", fd, size, offset)
        return result if result < 0 else Disk.read(self, fd, data, size, offset)

    cdef int sync(self, int fd) noexcept nogil:
        cdef int result
        with gil:
            result = self.asked("sync", fd, None, 0)
        return result if result < 0 else Disk.sync(self, fd)

    cdef int truncate(self, int fd, uint64_t size) noexcept nogil:
        cdef int result
        with gil:
            result = self.asked("truncate", fd, size, 0)
        return result if result < 0 else Disk.truncate(self, fd, size)

    cdef int link(self, const char* path, const char* target) noexcept nogil:
        cdef int result
        with gil:
            result = self.asked("link", path, <bytes> target, 0)
        return result if result < 0 else Disk.link(self, path, target)

    cdef int rename(self, const char* path, const char* target) noexcept nogil:
        cdef int result
        with gil:
            result = self.asked("rename", path, <bytes> target, 0)
        return result if result < 0 else Disk.rename(self, path, target)

    cdef int unlink(self, const char* path) noexcept nogil:
        cdef int result
        with gil:
            result = self.asked("unlink", path, None, 0)
        return result if result < 0 else Disk.unlink(self, path)

    cdef int sync_folder(self, const char* path) noexcept nogil:
        cdef int result
        with gil:
            result = self.asked("sync_folder", path, None, 0)
        return result if result < 0 else Disk.sync_folder(self, path)

    cdef int asked(self, name, path, data, offset) noexcept:
        """0, or -errno of what `operate` has raised."""
        try:
            self.operate(name, path, data, offset)
        except OSError as error:
            return -(error.errno or EIO)
        return 0

    cdef int report_open(self, path, fd) noexcept:
        self.opened(path, fd)
        return 0
