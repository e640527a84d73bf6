# Message numbers in ascending order, with a slot each: what a durable queue has on the disk. About 2 bytes a message
# that is one of a thousand, and nothing for one that follows the one before.
#
#   blocks   [ Block | Block | Block ]           of at most 1,024 numbers and of one slot
#   Block    data: gap << 1, or gap << 1 | 1 and a further length - 1, gap << 1, ...       varints
#              gap  numbers that are left out before this run of numbers
#
# The last run of a block is not in its data yet, so that a number that continues it changes a counter.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from fanlight_broker.storage.records cimport Growing

cdef struct Block:
    uint64_t first          # the first number that is left
    uint64_t run_first, run_last    # the last run
    uint64_t encoded        # the last number in `data`; before the first run: the one before it
    uint64_t nbytes         # of the messages that are left
    double latest           # when all of them have expired; inf: some never do
    uint8_t* data
    uint32_t slot
    uint16_t count          # numbers that are left
    uint16_t size, capacity
    uint16_t at             # in `data`, behind the run that `first` is in
    uint16_t left           # of that run, `first` included; 0: it is in the last run

# The runs of a block, one after the other: see next_run.
cdef struct Runs:
    Block block             # a copy, to read on in
    uint64_t first, last    # the present one
    bint begun, over

cdef int begin_runs(Runs* runs, Block* block) noexcept
cdef bint next_run(Runs* runs) noexcept

cdef class NumberList:
    cdef:
        readonly Py_ssize_t length
        readonly uint64_t nbytes
        Block* blocks
        Py_ssize_t head, n, capacity    # blocks before `head` are empty
        bint ends                       # the last block takes no more numbers

    cdef int add(self, uint64_t number, uint32_t slot, uint64_t octets, double expires_at) except -1
    cdef int split(self) noexcept
    cdef Py_ssize_t copy(self, uint64_t* numbers, Py_ssize_t skip, Py_ssize_t most, uint64_t last) noexcept
    cdef Block* new_block(self, uint64_t number, uint32_t slot) except NULL
    cdef int encode_run(self, Block* block) except -1
    cdef uint64_t take(self) noexcept
    cdef uint64_t drop(self) noexcept
    cdef bint has(self, uint64_t number) noexcept
    cdef uint64_t last_number(self) noexcept
    cdef int dump(self, Growing* octets, double ahead) except -1
    cdef Py_ssize_t load_block(self, bytes body, Py_ssize_t at) except -1
