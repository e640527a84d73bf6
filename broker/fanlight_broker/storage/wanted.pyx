# cython: language_level=3
"""Numbers of messages that are to be read: see wanted.pxd. The loop adds them, the reader thread fills in messages."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from fanlight_broker.wire.allocator cimport allocate, allocate_zeros, deallocate, reallocate
from fanlight_broker.wire.message cimport Message

cdef enum:
    FIRST_NUMBERS = 64
    DIGIT_BITS = 8
    DIGITS = 256

cdef struct IndexedNumber:
    uint64_t number
    uint32_t index      # in `asked`


cdef class Wanted:
    """numbers: to begin with, in any order, also several times"""

    def __cinit__(self, numbers=()):
        self.extend(numbers)

    def __dealloc__(self):
        deallocate(self.asked)
        deallocate(self.numbers)
        deallocate(self.places)
        deallocate(self.came)

    def extend(self, numbers):
        """Ask for these, too."""
        for number in numbers:
            self.room(1)[0] = number
            self.count += 1

    cdef uint64_t* room(self, Py_ssize_t more) except NULL:
        """Where so many more are to be written; `count` rises then."""
        cdef uint64_t* asked
        cdef Py_ssize_t capacity
        if self.asked is NULL or self.count + more > self.capacity:
            capacity = max(self.count + more, max(2 * self.capacity, <Py_ssize_t> FIRST_NUMBERS))
            asked = <uint64_t*> reallocate(self.asked, capacity * sizeof(uint64_t))
            if asked is NULL:
                raise MemoryError()
            self.asked, self.capacity = asked, capacity
        return self.asked + self.count

    cdef int sort(self) except -1:
        """Nothing is added any more."""
        cdef IndexedNumber* keys = <IndexedNumber*> allocate(2 * self.count * sizeof(IndexedNumber) + 1)
        self.numbers = <uint64_t*> allocate(self.count * sizeof(uint64_t) + 1)
        self.places = <uint32_t*> allocate(self.count * sizeof(uint32_t) + 1)
        if keys is NULL or self.numbers is NULL or self.places is NULL:
            deallocate(keys)
            raise MemoryError()
        with nogil:
            self.length = arranged(self.asked, self.count, keys, self.numbers, self.places)
        deallocate(keys)
        self.came = <double*> allocate_zeros(self.length + 1, sizeof(double))
        if self.came is NULL:
            raise MemoryError()
        self.messages = [None] * self.length
        return 0

    cdef int keep(self, Py_ssize_t place, Message message, double came) except -1:
        """It was read."""
        self.messages[place] = message
        self.came[place] = came
        return 0

    cdef Py_ssize_t place_of(self, uint64_t number) noexcept:
        """-1: it was not asked for."""
        cdef Py_ssize_t low = 0, high = self.length, middle
        while low < high:
            middle = (low + high) // 2
            if self.numbers[middle] < number:
                low = middle + 1
            else:
                high = middle
        return low if low < self.length and self.numbers[low] == number else -1

    def first(self, Py_ssize_t count):
        """The numbers that were asked for first, so many, in this order."""
        cdef Py_ssize_t i
        return [self.asked[i] for i in range(min(count, self.count))]

    def message(self, uint64_t number):
        """The message with this number, or None: it was not asked for, not read, or is lost."""
        cdef Py_ssize_t place = self.place_of(number)
        return self.messages[place] if place >= 0 else None

    def came_at(self, uint64_t number):
        """When it came, in seconds since 1970, or None: nobody knows."""
        cdef Py_ssize_t place = self.place_of(number)
        return self.came[place] if place >= 0 and self.came[place] else None


cdef Py_ssize_t arranged(const uint64_t* asked, Py_ssize_t count, IndexedNumber* keys, uint64_t* numbers,
                         uint32_t* places) noexcept nogil:
    """Fill in `numbers` and `places`; `keys` has room for twice as many. Returns how many numbers differ."""
    cdef Py_ssize_t i, length = 0
    for i in range(count):
        keys[i].number, keys[i].index = asked[i], <uint32_t> i
    keys = in_order(keys, keys + count, count)
    for i in range(count):
        if length == 0 or keys[i].number != numbers[length - 1]:
            numbers[length] = keys[i].number
            length += 1
        places[keys[i].index] = <uint32_t> (length - 1)
    return length


cdef IndexedNumber* in_order(IndexedNumber* keys, IndexedNumber* other, Py_ssize_t count) noexcept nogil:
    """Sorted by number, in `keys` or in `other`: digit by digit, the lowest first. Each pass keeps the order of equals.

    The numbers of one read are near each other, so three passes are enough.
    """
    cdef Py_ssize_t[DIGITS] at
    cdef Py_ssize_t i, before, found
    cdef uint64_t least = <uint64_t> -1, most = 0
    cdef int shift = 0, digit
    for i in range(count):
        least, most = min(least, keys[i].number), max(most, keys[i].number)
    while count and shift < 64 and (most - least) >> shift:
        memset(at, 0, sizeof(at))
        for i in range(count):
            at[((keys[i].number - least) >> shift) & (DIGITS - 1)] += 1
        before = 0
        for digit in range(DIGITS):
            found = at[digit]
            at[digit] = before
            before += found
        for i in range(count):
            digit = ((keys[i].number - least) >> shift) & (DIGITS - 1)
            other[at[digit]] = keys[i]
            at[digit] += 1
        keys, other = other, keys
        shift += DIGIT_BITS
    return keys
