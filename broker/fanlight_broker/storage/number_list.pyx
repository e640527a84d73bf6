# cython: language_level=3
"""Message numbers in ascending order: see number_list.pxd."""

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from fanlight_broker.storage cimport records
from fanlight_broker.storage.records cimport Growing, make_room
from fanlight_broker.wire.allocator cimport deallocate, reallocate
from fanlight_broker.wire.varint cimport put_varint as varint_at

from fanlight_broker.storage.records import BadRecord

cdef enum:
    BLOCK_NUMBERS = 1024
    BLOCK_BYTES = 4096
    FIRST_BYTES = 16
    RUN_BYTES = 20          # of a run, at most
    FIRST_BLOCKS = 2


cdef inline int put_varint(Block* block, uint64_t value) noexcept:
    block.size = <uint16_t> (varint_at(<char*> block.data + block.size, value) - <char*> block.data)
    return 0


cdef inline uint64_t get_varint(Block* block) noexcept:
    cdef uint64_t value = 0
    cdef int shift = 0
    while block.data[block.at] & 0x80:
        value |= <uint64_t> (block.data[block.at] & 0x7F) << shift
        block.at += 1
        shift += 7
    value |= <uint64_t> block.data[block.at] << shift
    block.at += 1
    return value


cdef inline void next_number(Block* block) noexcept:
    """`first` is taken: go to the number that follows it. There is one."""
    cdef uint64_t value
    if block.left > 1:
        block.left -= 1
        block.first += 1
    elif block.left == 0:
        block.first += 1        # in the last run
    elif block.at < block.size:
        value = get_varint(block)
        block.first += (value >> 1) + 1
        block.left = 1
        if value & 1:
            block.left = <uint16_t> (1 + get_varint(block))
    else:
        block.first = block.run_first
        block.left = 0


cdef int put_run(Growing* octets, uint64_t first, uint64_t last, uint64_t before) noexcept:
    """There is room for it."""
    records.put_varint(octets, (first - before - 1) << 1 | (last > first))
    if last > first:
        records.put_varint(octets, last - first)
    return 0


cdef int begin_runs(Runs* runs, Block* block) noexcept:
    """`next_run` goes to the first."""
    runs.block = block[0]
    runs.begun = runs.over = False
    return 0


cdef bint next_run(Runs* runs) noexcept:
    """False: that was the last."""
    cdef Block* block = &runs.block
    cdef uint64_t value
    if runs.over:
        return False
    if not runs.begun:
        runs.begun = True
        runs.first = block.first
        runs.over = block.left == 0
        runs.last = block.run_last if runs.over else block.first + block.left - 1
    elif block.at < block.size:
        value = get_varint(block)
        runs.first = runs.last + (value >> 1) + 1
        runs.last = runs.first + (get_varint(block) if value & 1 else 0)
    else:
        runs.first, runs.last, runs.over = block.run_first, block.run_last, True
    return True


cdef class NumberList:
    """Numbers with the slots, bytes and expiry of their messages. Bytes are exact for a block, and shared out in it."""

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.head, self.n):
            deallocate(self.blocks[i].data)
        deallocate(self.blocks)

    def __len__(self):
        return self.length

    @property
    def memory(self):
        """Bytes that the list takes."""
        cdef Py_ssize_t i, total = self.capacity * sizeof(Block)
        for i in range(self.head, self.n):
            total += self.blocks[i].capacity
        return total

    cdef int add(self, uint64_t number, uint32_t slot, uint64_t octets, double expires_at) except -1:
        """`number` is larger than all others."""
        cdef Block* block = &self.blocks[self.n - 1] if self.n > self.head else NULL
        if block is NULL or self.ends or block.slot != slot or block.count >= BLOCK_NUMBERS:
            block = self.new_block(number, slot)
        elif number == block.run_last + 1:
            block.run_last = number
        else:
            if block.size + RUN_BYTES > BLOCK_BYTES:
                block = self.new_block(number, slot)
            else:
                self.encode_run(block)
                block.run_first = block.run_last = number
        block.count += 1
        block.nbytes += octets
        block.latest = max(block.latest, expires_at)
        self.length += 1
        self.nbytes += octets
        return 0

    cdef int split(self) noexcept:
        """The next number is in another block: it expires much later."""
        self.ends = True
        return 0

    cdef Block* new_block(self, uint64_t number, uint32_t slot) except NULL:
        cdef Block* block
        cdef Py_ssize_t capacity
        if self.n == self.capacity:
            if self.head > self.n // 2:
                memmove(self.blocks, self.blocks + self.head, (self.n - self.head) * sizeof(Block))
                self.n -= self.head
                self.head = 0
            else:
                capacity = max(2 * self.capacity, <Py_ssize_t> FIRST_BLOCKS)
                block = <Block*> reallocate(self.blocks, capacity * sizeof(Block))
                if block is NULL:
                    raise MemoryError()
                self.blocks, self.capacity = block, capacity
        block = &self.blocks[self.n]
        memset(block, 0, sizeof(Block))
        block.first = block.run_first = block.run_last = number
        block.encoded = number - 1
        block.slot = slot
        self.ends = False
        self.n += 1
        return block

    cdef int encode_run(self, Block* block) except -1:
        """Put the last run into the data: another one begins."""
        cdef uint64_t more = block.run_last - block.run_first, gap = block.run_first - block.encoded - 1
        cdef uint8_t* data
        cdef uint16_t capacity
        cdef bint current = block.left == 0    # `first` is in this run
        if block.size + RUN_BYTES > block.capacity:
            capacity = <uint16_t> max(2 * block.capacity, FIRST_BYTES + RUN_BYTES)
            data = <uint8_t*> reallocate(block.data, capacity)
            if data is NULL:
                raise MemoryError()
            block.data, block.capacity = data, capacity
        put_varint(block, gap << 1 | (more > 0))
        if more:
            put_varint(block, more)
        block.encoded = block.run_last
        if current:
            block.left = <uint16_t> (block.run_last - block.first + 1)
            block.at = block.size
        return 0

    cdef Py_ssize_t copy(self, uint64_t* numbers, Py_ssize_t skip, Py_ssize_t most, uint64_t last) noexcept:
        """Write those behind the first `skip`, at most so many, and none that is larger than `last`. Returns how many.
        """
        cdef Py_ssize_t i, found = 0
        cdef uint16_t count
        cdef Block block
        for i in range(self.head, self.n):
            block = self.blocks[i]      # a copy, to read on in
            if skip >= block.count:
                skip -= block.count
                continue
            for count in range(block.count):
                if count:
                    next_number(&block)
                if skip:
                    skip -= 1
                    continue
                if found == most or block.first > last:
                    return found
                numbers[found] = block.first
                found += 1
        return found

    cdef uint64_t take(self) noexcept:
        """Remove the first number. Returns the bytes that it counted. There is one."""
        cdef Block* block = &self.blocks[self.head]
        cdef uint64_t octets = block.nbytes // block.count
        block.nbytes -= octets
        block.count -= 1
        self.nbytes -= octets
        self.length -= 1
        if block.count:
            next_number(block)
        else:
            self.drop()
        return octets

    cdef uint64_t drop(self) noexcept:
        """Remove the first block. Returns how many numbers it had left."""
        cdef Block* block = &self.blocks[self.head]
        cdef uint64_t count = block.count
        self.nbytes -= block.nbytes
        self.length -= block.count
        deallocate(block.data)
        block.data = NULL
        self.head += 1
        if self.head == self.n:
            deallocate(self.blocks)
            self.blocks = NULL
            self.head = self.n = self.capacity = 0
        return count

    cdef bint has(self, uint64_t number) noexcept:
        cdef Py_ssize_t low = self.head, high = self.n, middle
        cdef Runs runs
        if self.length == 0 or number < self.blocks[low].first:
            return False
        while high - low > 1:
            middle = (low + high) // 2
            if self.blocks[middle].first <= number:
                low = middle
            else:
                high = middle
        begin_runs(&runs, &self.blocks[low])
        while next_run(&runs):
            if number <= runs.last:
                return number >= runs.first
        return False

    cdef uint64_t last_number(self) noexcept:
        """0: it is empty."""
        return self.blocks[self.n - 1].run_last if self.length else 0

    # -- in the log ---------------------------------------------------------------------------------------------------

    cdef int dump(self, Growing* octets, double ahead) except -1:
        """Its blocks, behind what `octets` has; `read` reads them. ahead: of `now`, by which wall-clock time is."""
        cdef Py_ssize_t i, rest
        cdef uint64_t last
        cdef double latest
        cdef Block* block
        for i in range(self.head, self.n):
            block = &self.blocks[i]
            rest = block.size - block.at if block.left else 0
            make_room(octets, 8 * records.VARINT_MOST + rest)
            records.put_varint(octets, block.slot)
            records.put_varint(octets, block.count)
            records.put_varint(octets, block.nbytes)
            latest = block.latest + ahead
            memcpy(octets.data + octets.size, &latest, sizeof(latest))
            octets.size += sizeof(latest)
            records.put_varint(octets, block.first)
            last = block.first + block.left - 1 if block.left else block.run_last
            put_run(octets, block.first, last, block.first - 1)
            if block.left:
                memcpy(octets.data + octets.size, block.data + block.at, rest)
                octets.size += rest
                put_run(octets, block.run_first, block.run_last, block.encoded)
        return 0

    def read(self, bytes body not None, Py_ssize_t at):
        """Add what was dumped, from the place `at` to the end. Times are wall-clock times. Raises BadRecord."""
        while at < len(body):
            at = self.load_block(body, at)

    cdef Py_ssize_t load_block(self, bytes body, Py_ssize_t at) except -1:
        cdef uint64_t slot = records.get_varint(body, &at), count = records.get_varint(body, &at)
        cdef uint64_t nbytes = records.get_varint(body, &at), first, last, gap, more = 0, found = 0
        cdef double latest
        cdef Block* block = NULL
        if at + <Py_ssize_t> sizeof(latest) > len(body) or not 0 < count <= BLOCK_NUMBERS or slot > 0xFFFFFFFF:
            raise BadRecord("a block of numbers of which the bytes make no sense")
        memcpy(&latest, <const char*> body + at, sizeof(latest))
        at += sizeof(latest)
        first = records.get_varint(body, &at)
        last = first - 1
        if first <= self.last_number():
            raise BadRecord(f"number {first} behind {self.last_number()}")
        while found < count:
            gap = records.get_varint(body, &at)
            more = records.get_varint(body, &at) if gap & 1 else 0
            first = last + (gap >> 1) + 1
            if first <= last or more >= count - found or first + more < first:
                raise BadRecord("numbers that do not rise")
            if block is NULL:
                block = self.new_block(first, <uint32_t> slot)
            else:
                self.encode_run(block)
            last = first + more
            block.run_first, block.run_last = first, last
            block.count += <uint16_t> (more + 1)
            found += more + 1
        block.nbytes, block.latest = nbytes, latest
        self.length += count
        self.nbytes += nbytes
        return at

    def adjust(self, double seconds):
        """Its times are later by so many seconds."""
        cdef Py_ssize_t i
        for i in range(self.head, self.n):
            self.blocks[i].latest += seconds

    # -- for Python -------------------------------------------------------------------------------------------------

    def runs(self):
        """[(slot, first, last), ...] of all runs of numbers."""
        cdef list found = []
        cdef Py_ssize_t i
        cdef Runs runs
        for i in range(self.head, self.n):
            begin_runs(&runs, &self.blocks[i])
            while next_run(&runs):
                found.append((runs.block.slot, runs.first, runs.last))
        return found

    def append(self, uint64_t number, uint32_t slot, uint64_t octets, double expires_at=INFINITY):
        """`add`. Raises ValueError if the number is not larger than all others."""
        if number == 0 or (self.n > self.head and number <= self.blocks[self.n - 1].run_last):
            raise ValueError(f"number {number} is not behind {self.blocks[self.n - 1].run_last if self.n else 0}")
        self.add(number, slot, octets, expires_at)

    def first(self, Py_ssize_t most):
        """[(number, slot), ...] of the first, at most so many."""
        cdef list found = []
        cdef Py_ssize_t i
        cdef uint16_t count
        cdef Block block
        for i in range(self.head, self.n):
            block = self.blocks[i]      # a copy, to read on in
            for count in range(block.count):
                if len(found) == most:
                    return found
                if count:
                    next_number(&block)
                found.append((block.first, block.slot))
        return found

    def remove_first(self, Py_ssize_t count):
        """Remove so many. Returns the bytes that they counted."""
        cdef uint64_t octets = 0
        for _ in range(min(count, self.length)):
            octets += self.take()
        return octets

    def expired(self, double now):
        """How many of the first have expired, as far as that is known of whole blocks."""
        cdef Py_ssize_t i, total = 0
        for i in range(self.head, self.n):
            if self.blocks[i].latest > now:
                break
            total += self.blocks[i].count
        return total
