# cython: language_level=3, annotation_typing=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Selecting: the subscriptions of an index that have a selector. Drawn in selecting.pxd.

Threads: where Python code runs (a selector is read, fields are loaded), another thread may come in between. So that is
done first, and again if the index has changed meanwhile; what follows runs none.
"""

from libc.stdint cimport uint64_t

from matchcore.ascending cimport make_ascending
from matchcore.fields cimport MESSAGE_WORDS, WORDS_AT_MOST
from matchcore.ids cimport tuple_of_ids
from matchcore.screen cimport Screen

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

    def __cinit__(self, filters: object) -> None:
        self.filters = filters
        self.attributes = Attributes()
        self.screens, self.texts, self.free, self.numbers = [], [], [], {}

    # ---- changing -------------------------------------------------------------------------------

    def insert(self, filter: object, id: int, selector: object, syntax: str) -> bool:
        """Whether that changed something. All or nothing. The selector has been checked (`selector_of`)."""
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
        self.filters.insert(filter, number, syntax=key[1])
        if self.free:
            self.free.pop()
            self.screens[number], self.texts[number] = screen, texts
        else:
            self.screens.append(screen)
            self.texts.append(texts)
        self.numbers[key] = number
        self.count += 1
        return 0

    def remove(self, filter: object, id: int, syntax: str) -> bool:
        """Whether it was there."""
        cdef Screen screen
        key = _encoded(filter), syntax
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
            self.screens[number] = self.texts[number] = None
            del self.numbers[key]
            self.free.append(number)
        return True

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

    def match_rows(self, topics: list, ends: object, ids: object, columns: object, syntax: str) -> tuple:
        """What `match_many` found, (ends, ids), and the ids whose selector is true."""
        import numpy
        found = [
            self.match(topic, values, syntax)
            for topic, values in zip(topics, self._rows(columns, len(topics)), strict=True)
        ]
        if not any(found):
            return ends, ids
        merged = [
            numpy.union1d(ids[ends[row]:ends[row + 1]], numpy.array(more, dtype=numpy.uint32))
            for row, more in enumerate(found)
        ]
        together = numpy.zeros(len(ends), dtype=numpy.int64)
        numpy.cumsum([len(row) for row in merged], out=together[1:])
        return together, numpy.concatenate(merged)

    def _rows(self, columns: object, count: int) -> object:
        """The fields of each row: of the columns that a selector asks for."""
        if columns is None:
            return [None] * count
        if hasattr(columns, "schema"):  # of Arrow
            columns = {name: columns.column(place) for place, name in enumerate(columns.schema.names)}
        asked = {name: column for name, column in columns.items() if self.attributes.number(attribute_of(name)) >= 0}
        for name, column in asked.items():
            if len(column) != count:
                raise ValueError(f"the column {name!r} has {len(column)} values, and there are {count} topics")
        values = [_listed(column) for column in asked.values()]
        return [dict(zip(asked, row)) for row in zip(*values)] if asked else [{}] * count

    def asked(self, topic: object, syntax: str) -> tuple:
        """The keys of `fields` that a selector reads, of the filters that match; not those that the topic gives."""
        keys = set()
        for screen in [self.screens[number] for number in self.filters.match(topic, syntax=syntax)]:
            for attribute in screen.asked():
                if attribute.source is not Source.MESSAGE or attribute.path[0] not in ("word", "words"):
                    keys.add(key_of(attribute))
        return tuple(sorted(keys, key=str))

    def hits(self, fields: object) -> dict:
        """Of each id how many criteria are true, as reference.py defines it."""
        hits = {}
        values = {attribute_of(key) if isinstance(key, str) else key: value for key, value in fields.items()}
        read = {}
        for texts in self.texts:
            for id, text in list((texts or {}).items()):
                if text not in read:
                    read[text] = _hits(parse_where(text), values)
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
        return self.filters.nbytes + self.attributes.nbytes + screens + self.text_bytes

    def selectors(self) -> list:
        """[(filter, syntax, id, where), ...]."""
        return [
            (filter, syntax, id, where)
            for filter, syntax, number in self.filters.filters()
            for id, where in sorted(self.texts[number].items())
        ]

    def selected(self, topic: object, fields: object, syntax: str, wanted: object) -> list:
        """[(filter, syntax, id, tier, key, where, found by), ...] of those that match, of these ids (None: of all).

        RuntimeError if the index changes.
        """
        cdef uint64_t version
        values = self._values(topic, fields, syntax)
        found = []
        version = self.version
        for filter, filter_syntax, number, tier, key in self.filters.located(topic, syntax=syntax):
            texts = self.texts[number]
            screen = self.screens[number]
            ids = [id for id in screen.match(values) if wanted is None or id in wanted]
            ways = found_by(screen, ids, values)
            if self.version != version:
                raise RuntimeError("the FilterIndex changed while its matches were explained")
            found += [
                (filter, filter_syntax, id, tier, key, texts[id], way) for id, way in zip(ids, ways, strict=True)
            ]
        return found


cdef bytes _encoded(object filter):
    return str.encode(filter) if isinstance(filter, str) else bytes.join(b"", (filter,))


cdef Py_ssize_t _size(str text):
    return len(text) + TEXT_OVERHEAD


cdef int _hits(object selector, object values) except -1:
    parts = selector.parts if isinstance(selector, (And, Or, AtLeast)) else (selector,)
    return sum([holds(part, values) is True for part in parts])


cdef object _listed(object column):
    """The values as Python has them: of an Arrow array, a numpy array, or any sequence."""
    for method in ("to_pylist", "tolist"):
        if hasattr(column, method):
            return getattr(column, method)()
    return column
