# cython: language_level=3, annotation_typing=False, cdivision=True
"""FrozenIndex: an immutable copy of a FilterIndex, for readers beside whoever changes it.

    writer      index.insert(...)   index.remove(...)   copy = freeze(index)       published by assigning it
    readers     copy.match(...)     copy.match_many(...)                           never wait, never see half a change

All it holds is numbers in one piece of memory: a header, then the arrays the search reads, as they lie. So it
is written to a file as it is, mapped from there by any number of processes without rebuilding anything, sent
as bytes, put into shared memory. Opening costs the same for ten filters and for ten millions, but for the
checksum (`verify=False` leaves it out). The picture is in frozen.pxd, the bytes are in frozen_layout.pxd and in
docs/frozen-format.md.

It is a FilterIndex that nobody can change: insert and remove raise TypeError, all else is as there, and so is
the search, to the line. `version` is the index's at the moment of the copy: two copies of one index with the
same version hold the same. Its hash tables are made under a secret of its own, so a file gives nothing away
about the process it comes from.

Threads: match_many, of any number of threads, runs without the GIL and waits for nobody; but of an index with selectors
whoever needs a screen that is not built yet waits for those that run, and builds it with the GIL.

Trust: sizes and a checksum detect a file that was cut off or overwritten. Everything that a forger with a valid
checksum could write is checked before it is used: a search never reads outside the bytes, though its answers may be
wrong. InvalidFrozenIndex is raised in both cases. `verify=False` skips these checks: then open only files whose
source you would trust with code. There is no protection against bytes that change while they are in use, and a file
that is truncated while it is mapped ends the process (SIGBUS). Therefore `save` never changes a file in place: it
writes a new file and renames it, so that processes that have the old file mapped keep it. Copy files in the same
way.
"""

import errno
import os
from mmap import ACCESS_READ, mmap
from pickle import PickleBuffer

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from matchcore.allocator cimport deallocate
from matchcore.bag cimport Bag
from matchcore.bitmap cimport Block
from matchcore.frozen_check cimport sections_fault
from matchcore.frozen_finish cimport checksum, draft_finish
from matchcore.frozen_layout cimport ALIGNED, CHECKED_FROM, FORMAT_SELECTORS, Header, LEAST_ALIGNED, PoolRow, PoolWord
from matchcore.frozen_read cimport header_fault, opened_free, opened_init
from matchcore.frozen_write cimport Draft, draft_copy
from matchcore.hashing cimport MULTIPLIERS
from matchcore.line_table cimport Line
from matchcore.pool cimport Column
from matchcore.slots cimport Slot
from matchcore.words cimport Word

from matchcore.errors import InvalidFrozenIndex

__all__ = ["FrozenIndex", "freeze"]

cdef enum:
    TRIES = 100  # while other threads change an index with selectors

# What docs/frozen-format.md says of the structs that are in the file as they are.
if (
    sizeof(Header), sizeof(Word), sizeof(Line), sizeof(Slot), sizeof(Bag), sizeof(Column), sizeof(Block),
    sizeof(PoolRow), sizeof(PoolWord),
) != (1016, 32, 64, 8, 12, 20, 64, 16, 16):
    raise ImportError("matchcore.frozen: a struct is not what the frozen format says")


@cython.no_gc
cdef class FrozenIndex(FilterIndex):
    """An immutable copy of a FilterIndex in one piece of memory, which threads and processes may share.

    Made by `freeze`, `FrozenIndex.open` and `FrozenIndex.from_buffer`. It has the buffer protocol:
    `bytes(frozen)`, `memoryview(frozen)`, or given to whatever takes a buffer.
    """

    def __init__(self) -> None:
        raise TypeError("a FrozenIndex is made by matchcore.freeze, FrozenIndex.open or FrozenIndex.from_buffer")

    def __dealloc__(self) -> None:
        if self.is_opened:
            opened_free(&self.opened, &self.slots, &self.tiers, &self.allocator)
        deallocate(&self.allocator, self.own, self.own_size)

    cdef int _open(self, const Header* header) except -1:
        """Takes these bytes, which live as long as it does, for its own."""
        self.is_opened = True
        self.header = header
        self.version = header.version
        if opened_init(&self.opened, header, &self.slots, &self.tiers, &self.allocator) < 0:
            raise MemoryError()
        return 0

    cdef int _take_selectors(self, object section, bint verify, object source) except -1:
        """Those of a section of its own bytes."""
        from matchcore.frozen_selectors import StoredSelectors  # here, both: only an index with selectors needs them
        from matchcore.selecting import Selecting
        cdef FrozenIndex filters
        try:
            stored = StoredSelectors(section, verify)
            filters = _from_buffer(FrozenIndex, stored.index, verify, None)
        except InvalidFrozenIndex as error:
            raise InvalidFrozenIndex(source, f"of its selectors: {error.reason}") from None
        if filters.limits.words != self.limits.words or filters.limits.bytes != self.limits.bytes:
            raise InvalidFrozenIndex(source, "its filters with selectors have other limits")
        self.selecting = Selecting(filters, stored)
        return 0

    cdef int _to_have_bytes(self) except -1:
        # FrozenIndex.__new__ alone, or a subclass with an __init__ of its own, makes one that is empty.
        if not self.is_opened:
            raise ValueError("this FrozenIndex was not made by freeze, open or from_buffer: it has no bytes")
        return 0

    cdef int _to_change(self) except -1:
        raise TypeError("a FrozenIndex does not change: change the FilterIndex it comes from, and freeze that again")

    @classmethod
    def from_buffer(cls, buffer, *, verify: bool = True):
        """The index in these bytes: anything contiguous with the buffer protocol, from an address that is a multiple
        of 8 (better 64). They are used where they are, not copied, and kept alive; they must not change.

        Raises InvalidFrozenIndex for what is no frozen index, or is cut off or damaged; with `verify=False` it is not
        looked at but for its header.
        """
        return _from_buffer(cls, buffer, verify, None)

    @classmethod
    def open(cls, path, *, verify: bool = True):
        """The index in a file that `save` wrote: mapped, for reading, and shared with all who map it. The rest is as
        in from_buffer. Raises OSError for what cannot be opened.
        """
        source = os.fsdecode(path)
        with open(source, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise InvalidFrozenIndex(source, "it is empty")
            mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
        return _from_buffer(cls, mapped, verify, source)

    def save(self, path) -> None:
        """Writes it to a file: beside, then renamed, so that there is never half a file under this name.

        Raises OSError for what cannot be written, and where the name is that of a device, a pipe or a directory:
        the renaming would put the file in its place.
        """
        target = os.fsdecode(path)
        if os.path.exists(target) and not os.path.isfile(target):
            raise OSError(errno.EEXIST, "there is something else than a file", target)
        beside = f"{target}.{os.urandom(8).hex()}"
        try:
            with open(beside, "xb") as file:
                file.write(self)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        except BaseException:
            if os.path.exists(beside):
                os.unlink(beside)
            raise

    def to_bytes(self) -> bytes:
        """A copy of the bytes; `memoryview(self)` gives them without a copy."""
        self._to_have_bytes()
        return PyBytes_FromStringAndSize(<const char*> self.header, <Py_ssize_t> self.header.size)

    def __getbuffer__(self, Py_buffer* view, int flags):
        self._to_have_bytes()
        PyBuffer_FillInfo(view, self, <void*> self.header, <Py_ssize_t> self.header.size, 1, flags)

    @property
    def nbytes(self) -> int:
        """Bytes of the index, wherever they lie, and of this object with all that it has of its own."""
        cdef size_t others = <size_t> self.header.size if self.is_opened and self.own == NULL else 0
        cdef size_t selecting = 0 if self.selecting is None else self.selecting.nbytes
        return self.allocator.bytes + others + <size_t> type(self).__basicsize__ + selecting

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce_ex__(self, protocol):
        """Pickled as its bytes; with protocol 5 a buffer_callback gets them without a copy."""
        return _opened, (type(self), PickleBuffer(self) if protocol >= 5 else self.to_bytes())


def _opened(cls, buffer):
    """For pickle."""
    return cls.from_buffer(buffer)


cdef object _from_buffer(object cls, object buffer, bint verify, object source):
    cdef object octets = memoryview(buffer).cast("B")
    cdef const Py_buffer* view = PyMemoryView_GET_BUFFER(octets)
    cdef const Header* header = <const Header*> view.buf
    cdef const char* fault
    cdef uint64_t sum
    cdef FrozenIndex made
    if <size_t> view.buf % LEAST_ALIGNED != 0:
        raise InvalidFrozenIndex(source, f"it begins at an address that is no multiple of {LEAST_ALIGNED}")
    fault = header_fault(header, <size_t> view.len)
    if fault != NULL:
        raise InvalidFrozenIndex(source, fault.decode())
    if verify:
        with nogil:
            sum = checksum(<const char*> header + CHECKED_FROM, <size_t> header.size - CHECKED_FROM)
        if sum != header.checksum:
            raise InvalidFrozenIndex(source, "its checksum is another one: it has been damaged")
        with nogil:
            fault = sections_fault(header)
        if fault != NULL:
            raise InvalidFrozenIndex(source, fault.decode())
    made = cls.__new__(cls, header.words_most, header.bytes_most)
    if made is None or made.is_opened:
        raise TypeError(f"{cls.__name__}.__new__ made no new FrozenIndex")
    made.owner = octets
    made._open(header)
    if header.format == FORMAT_SELECTORS:
        made._take_selectors(
            octets[header.selectors.offset:header.selectors.offset + header.selectors.size], verify, source
        )
    return made


def freeze(FilterIndex index not None, allocations: int = -1):
    """An immutable copy of an index, in its own bytes; a FrozenIndex is returned as it is.

    The index may not change while its bytes are copied, as in match_many; what takes longer comes after that. Both
    run without the GIL: in a worker thread the copy does not stop an event loop. Selectors are collected with the GIL
    before, and again if the index changes meanwhile. MemoryError leaves all as it was. RuntimeError if the index has
    selectors and changes again and again.

    `allocations`: for tests, the number of allocations that succeed; -1: all.
    """
    cdef FrozenIndex made = None
    if isinstance(index, FrozenIndex):
        return index
    for _ in range(TRIES):
        selecting, version = index.selecting, index.version
        selectors = None if selecting is None else _packed(selecting)
        made = _frozen(index, selecting, version, selectors, allocations)
        if made is not None:
            break
    else:
        raise RuntimeError("the FilterIndex changed again and again while it was frozen")
    if selectors is not None:
        made = _from_buffer(FrozenIndex, _copied(made), False, None)
    made.together_from = index.together_from
    made.allocator.allowance = -1
    return made


cdef bytes _packed(object selecting):
    """The section of the selectors."""
    from matchcore.frozen_selectors import packed  # here: only an index with selectors needs it
    filters, texts = selecting.held()
    return packed(freeze(filters).to_bytes(), texts)


cdef object _copied(FrozenIndex made):
    """Its bytes in memory of their own, from an address that is a multiple of 64."""
    cdef Py_ssize_t size = <Py_ssize_t> made.header.size
    room = bytearray(size + ALIGNED)
    cdef unsigned char[::1] octets = room
    cdef Py_ssize_t start = <Py_ssize_t> (-<size_t> &octets[0] % ALIGNED)
    memcpy(&octets[start], made.header, <size_t> size)
    return memoryview(room)[start:start + size]


cdef FrozenIndex _frozen(FilterIndex index, object selecting, uint64_t version, bytes selectors, int allocations):
    """With these selectors; None: the index has others by now."""
    cdef FrozenIndex made = FrozenIndex.__new__(FrozenIndex, index.limits.words, index.limits.bytes)
    cdef Draft draft
    cdef int status
    memset(&draft, 0, sizeof(Draft))
    _draw(&draft)
    if selectors is not None:
        draft.selectors = selectors
        draft.selectors_size = <size_t> len(selectors)
    draft.allocator = &made.allocator
    made.allocator.allowance = allocations
    index._threads_that_are()
    if index.selecting is not selecting or (selecting is not None and index.version != version):
        return None
    if index.writers != 0:
        _begin(index, &draft)
        status = draft_copy(&draft)
    else:
        index._begin_reading()
        try:
            _begin(index, &draft)
            with nogil:
                status = draft_copy(&draft)
        finally:
            index._end_reading()
    if status == 0:
        with nogil:
            status = draft_finish(&draft)
    if status < 0:
        raise MemoryError()
    made.own = draft.block
    made.own_size = draft.block_size
    made._open(draft.header)
    return made


def checksum_of(octets: bytes) -> int:
    """The checksum that these bytes of a frozen index should have, for who writes or checks them elsewhere."""
    cdef const unsigned char[::1] all = octets
    if len(octets) < <Py_ssize_t> sizeof(Header) or len(octets) % ALIGNED != 0:
        raise ValueError("these are not the bytes of a frozen index")
    return checksum(&all[CHECKED_FROM], <size_t> len(octets) - CHECKED_FROM)


cdef int _draw(Draft* draft) except -1:
    """Odd numbers, as in hashing.pyx."""
    cdef bytes drawn = os.urandom(sizeof(draft.secret) + sizeof(draft.multipliers))
    cdef size_t i
    memcpy(draft.secret, <const char*> drawn, sizeof(draft.secret))
    memcpy(draft.multipliers, <const char*> drawn + sizeof(draft.secret), sizeof(draft.multipliers))
    for i in range(4):
        draft.secret[i] |= 1
    for i in range(MULTIPLIERS):
        draft.multipliers[i] |= 1
    return 0


cdef void _begin(FilterIndex index, Draft* draft) noexcept:
    """With the GIL, and from here on nobody changes the index."""
    draft.slots = &index.slots
    draft.tiers = &index.tiers
    draft.limits = index.limits
    draft.version = index.version
    if index.tiers.classes.likely != NULL:
        memcpy(draft.likely, index.tiers.classes.likely, index.tiers.classes.width * sizeof(uint64_t))
