# cython: language_level=3, annotation_typing=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Selecting: the subscriptions of an index that have a selector. Drawn in selecting.pxd.

Threads: where Python code runs (a selector is read, fields are loaded), another thread may come in between. So that is
done first, and again if the index has changed meanwhile; what follows runs none.

Of a frozen index the screens are built when a topic first matches their filter, from what is `stored`.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint64_t

from matchcore.ascending cimport make_ascending
from matchcore.fields cimport MESSAGE_WORDS, WORDS_AT_MOST
from matchcore.ids cimport tuple_of_ids
from matchcore.screen cimport Screen

from matchcore.errors import InvalidFrozenIndex, InvalidSelector
from matchcore.grammar import split_topic
from matchcore.kleene import attribute_of, holds, key_of, with_topic
from matchcore.reached import found_by
from matchcore.selector import And, AtLeast, Or, Source
from matchcore.where import parse_where

__all__ = ["Selecting"]

cdef enum:
    TRIES = 100          # of a match while other threads, or the fields, change the index
    TEXT_OVERHEAD = 150  # bytes of a text beside its characters: the object, and its place in a dict

WIDEST = {"max_words": 1024, "max_bytes": 1 << 30}  # the index has checked the topic against its own limits


cdef class Selecting:
    """`filters`: an empty FilterIndex, which is its own from now on."""

    def __cinit__(self, filters: object, stored: object = None) -> None:
        self.filters = filters
        self.stored = stored
        self.attributes = Attributes()
        self.screens, self.texts, self.free, self.numbers = [], [], [], {}
        if stored is not None:
            self._reserve(stored.filters)
            self.screens = [None] * stored.filters
            self.count = stored.subscriptions

    def __dealloc__(self) -> None:
        PyMem_Free(self.built)

    # ---- changing -------------------------------------------------------------------------------

    cdef int _reserve(self, uint32_t count) except -1:
        """Room for as many numbers."""
        cdef uint32_t room = max(count, 2 * self.room)
        cdef void* built
        cdef uint32_t i
        if count <= self.room:
            return 0
        built = PyMem_Realloc(self.built, room * sizeof(void*))
        if built == NULL:
            raise MemoryError()
        self.built = <void**> built
        for i in range(self.room, room):
            self.built[i] = NULL
        self.room = room
        return 0

    cdef void _set(self, uint32_t number, Screen screen) noexcept:
        self.screens[number] = screen
        self.built[number] = <void*> screen if screen is not None else NULL

    def insert(self, filter: object, id: int, selector: object, syntax: str) -> bool:
        """Whether that changed something. All or nothing. The selector has been checked (`selector_of`)."""
        cdef unsigned long held = self.filters._hold()
        try:
            return self._insert(filter, id, selector, syntax)
        finally:
            self.filters._let_go(held)

    cdef bint _insert(self, object filter, uint32_t id, object selector, str syntax) except -1:
        cdef Screen screen
        text = str(selector)
        key = _encoded(filter), syntax
        while True:
            number = self.numbers.get(key)
            if number is None:
                screen = Screen(self.attributes)
                screen.insert(id, selector)
                if key not in self.numbers:  # still
                    self._take(filter, key, screen, {id: text})
                    break
            else:
                if self.texts[number].get(id) == text:
                    return False
                screen = self.screens[number]
                is_new = screen.insert(id, selector)
                if self.numbers.get(key) == number and self.screens[number] is screen:  # still
                    self.count += is_new
                    self.text_bytes -= 0 if is_new else _size(self.texts[number][id])
                    self.texts[number][id] = text
                    break
        self.text_bytes += _size(text)
        self.version += 1
        return True

    cdef int _take(self, object filter, tuple key, Screen screen, dict texts) except -1:
        """A number for a filter that has none yet."""
        number = self.free[-1] if self.free else len(self.screens)
        self._reserve(number + 1)
        self.filters.insert(filter, number, syntax=key[1])
        if self.free:
            self.free.pop()
            self.texts[number] = texts
        else:
            self.screens.append(None)
            self.texts.append(texts)
        self._set(number, screen)
        self.numbers[key] = number
        self.count += 1
        return 0

    def remove(self, filter: object, id: int, syntax: str) -> bool:
        """Whether it was there."""
        cdef Screen screen
        cdef unsigned long held
        key = _encoded(filter), syntax
        held = self.filters._hold()
        try:
            number = self.numbers.get(key)
            if number is None:
                return False
            screen = self.screens[number]
            if not screen.remove(id):
                return False
            self.text_bytes -= _size(self.texts[number].pop(id))
            self.count -= 1
            self.version += 1
            if len(screen) == 0:
                self.filters.remove(filter, number, syntax=syntax)
                self._set(number, None)
                self.texts[number] = None
                del self.numbers[key]
                self.free.append(number)
            return True
        finally:
            self.filters._let_go(held)

    def screen(self, number: int) -> Screen:
        """The screen of a filter, built if need be. Raises InvalidFrozenIndex where what is stored is no selector."""
        cdef unsigned long held
        if number >= len(self.screens):
            raise InvalidFrozenIndex(None, "a filter has selectors that are not there")
        screen = self.screens[number]
        if screen is not None or self.stored is None:
            return screen
        held = self.filters._hold()
        try:
            self._build(number)
        finally:
            self.filters._let_go(held)
        return self.screens[number]

    cdef int _build(self, object number) except -1:
        # A function of its own: a screen that is given up is freed, with its attributes, before others may read again.
        cdef Screen screen = Screen(self.attributes)
        read = {}
        for id, text in self.stored.texts(number).items():
            if text not in read:
                read[text] = _tree_of(text)
            screen.insert(id, read[text])
        if self.screens[number] is None:  # still
            self._set(number, screen)
        return 0

    cdef dict _texts_of(self, object number):
        """id -> text, of one filter."""
        texts = self.texts[number] if self.stored is None else self.stored.texts(number)
        return {} if texts is None else texts

    # ---- asking ---------------------------------------------------------------------------------

    cdef bint _asks_for_the_topic(self) noexcept:
        cdef int n
        if self.attributes.message(MESSAGE_WORDS) >= 0:
            return True
        for n in range(1, WORDS_AT_MOST + 1):
            if self.attributes.word(n) >= 0:
                return True
        return False

    cdef object _values(self, object topic, object fields, object syntax):
        """The fields, with what the topic says if a selector asks for it."""
        if not self._asks_for_the_topic():
            return {} if fields is None else fields
        return with_topic({} if fields is None else fields, split_topic(topic, syntax, **WIDEST))

    def match(self, topic: object, fields: object, syntax: str, first_only: bool = False) -> tuple:
        """The ids whose filter matches and whose selector is true, ascending; with `first_only` of one filter alone."""
        cdef Fields loaded = None
        cdef IdList found
        cdef Screen screen
        cdef uint64_t version
        for _ in range(TRIES):
            version = self.version
            numbers = self.filters.match(topic, syntax=syntax)
            if not numbers:
                return ()
            if self.stored is not None:
                for number in numbers:
                    self.screen(number)
            if loaded is None:
                loaded, self.fields = self.fields, None
            if loaded is None:
                loaded = Fields(self.attributes)
            loaded.load(self._values(topic, fields, syntax))
            if self.version == version:
                break
        else:
            raise RuntimeError("the FilterIndex changed again and again while the fields were read")
        found, self.found = self.found, None
        if found is None:
            found = IdList()
        found.clear()
        for number in numbers:
            screen = self.screens[number]
            if screen.find(loaded, found) != 0 and first_only:
                break
        if make_ascending(&found.allocator, &found.ids, 0, &found.spare) < 0:
            raise MemoryError()
        answer = tuple_of_ids(found.ids.items, found.ids.size)
        self.fields, self.found = loaded, found
        return answer

    def asked(self, topic: object, syntax: str) -> tuple:
        """The keys of `fields` that a selector reads, of the filters that match; not those that the topic gives."""
        keys = set()
        for screen in [self.screen(number) for number in self.filters.match(topic, syntax=syntax)]:
            for attribute in screen.asked():
                if attribute.source is not Source.MESSAGE or attribute.path[0] not in ("word", "words"):
                    keys.add(key_of(attribute))
        return tuple(sorted(keys, key=str))

    def hits(self, fields: object) -> dict:
        """Of each id how many criteria are true, as reference.py defines it."""
        hits = {}
        values = {attribute_of(key) if isinstance(key, str) else key: value for key, value in fields.items()}
        read = {}
        for number in range(len(self.screens)):
            for id, text in list(self._texts_of(number).items()):
                if text not in read:
                    read[text] = _hits(_tree_of(text), values)
                if read[text] != 0:
                    hits[id] = max(read[text], hits.get(id, 0))
        return hits

    # ---- looking in -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.count

    @property
    def nbytes(self) -> int:
        """Bytes of memory: filters, screens, names of attributes, texts."""
        screens = sum([screen.nbytes for screen in self.screens if screen is not None])
        shared = 0 if self.stored is None else len(memoryview(self.filters))  # which are the frozen index's own
        return self.filters.nbytes - shared + self.attributes.nbytes + screens + self.text_bytes

    def held(self) -> tuple:
        """(filters, texts): the index of filters, and by its ids {id: where}, of which some may be empty."""
        return self.filters, [dict(texts) if texts is not None else {} for texts in self.texts]

    def selectors(self) -> list:
        """[(filter, syntax, id, where), ...]."""
        return [
            (filter, syntax, id, where)
            for filter, syntax, number in self.filters.filters()
            for id, where in sorted(self._texts_of(number).items())
        ]

    def selected(self, topic: object, fields: object, syntax: str, wanted: object) -> list:
        """[(filter, syntax, id, tier, key, where, found by), ...] of those that match, of these ids (None: of all).

        RuntimeError if the index changes.
        """
        cdef uint64_t version
        for number in self.filters.match(topic, syntax=syntax):
            self.screen(number)  # so that it is known what they ask for
        values = self._values(topic, fields, syntax)
        found = []
        version = self.version
        for filter, filter_syntax, number, tier, key in self.filters.located(topic, syntax=syntax):
            texts = self._texts_of(number)
            screen = self.screen(number)
            ids = [id for id in screen.match(values) if wanted is None or id in wanted]
            try:
                ways = found_by(screen, ids, values)
            except ValueError:  # of an attribute that nobody asks for any more
                if self.version == version:
                    raise
            if self.version != version:
                raise RuntimeError("the FilterIndex changed while its matches were explained")
            found += [
                (filter, filter_syntax, id, tier, key, texts[id], way) for id, way in zip(ids, ways, strict=True)
            ]
        return found


cdef bytes _encoded(object filter):
    return str.encode(filter) if isinstance(filter, str) else bytes.join(b"", (filter,))


cdef object _tree_of(str text):
    """Of a text that is held. Only a frozen index can have another one than `str` of a selector."""
    try:
        return parse_where(text)
    except InvalidSelector as error:
        raise InvalidFrozenIndex(None, f"a selector of it is none: {error}") from error


cdef Py_ssize_t _size(str text):
    return len(text) + TEXT_OVERHEAD


cdef int _hits(object selector, object values) except -1:
    parts = selector.parts if isinstance(selector, (And, Or, AtLeast)) else (selector,)
    return sum([holds(part, values) is True for part in parts])
