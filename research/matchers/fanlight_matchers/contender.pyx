# cython: cdivision=True
"""What the compiled contenders share: texts in, ids out, and the loops that time them without Python's calls.

`bench` and `mix` run without the GIL and are timed by the processor time of their thread. A contender that
has once run out of memory is to be thrown away.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort, realloc
from posix.time cimport clock_gettime, timespec

from fanlight_matchers.lock cimport lock_alone, lock_free, lock_new, lock_release, lock_shared
from fanlight_matchers.text cimport LITERAL, MANY, MOST_WORDS, ONE, Word, hash_pair, split


cdef extern from "<time.h>" nogil:
    int CLOCK_THREAD_CPUTIME_ID
    int CLOCK_MONOTONIC

SEPARATORS = {"amqp": b".", "mqtt": b"/"}
cdef enum:
    OUT = 64  # filters that `mix` keeps out of the index, so that an insert does not follow its removal


cdef struct Text:
    const unsigned char* text
    size_t size


cdef int64_t clock_ns(int clock) noexcept nogil:
    cdef timespec now
    clock_gettime(clock, &now)
    return <int64_t> now.tv_sec * 1_000_000_000 + now.tv_nsec


cdef int64_t thread_ns() noexcept nogil:
    return clock_ns(CLOCK_THREAD_CPUTIME_ID)


cdef bint found_grow(Found* found) noexcept nogil:
    cdef size_t room = 2 * found.room if found.room else 64
    cdef uint32_t* ids = <uint32_t*> realloc(found.ids, room * sizeof(uint32_t))
    if ids == NULL:
        found.lost = True
        return False
    found.ids = ids
    found.room = room
    return True


cdef int ascending(const void* a, const void* b) noexcept nogil:
    cdef uint32_t x = (<const uint32_t*> a)[0], y = (<const uint32_t*> b)[0]
    return (x > y) - (x < y)


cdef Text* texts_of(list given) except NULL:
    """Where the bytes are; `given` must outlive it."""
    cdef Text* texts = <Text*> malloc((len(given) + 1) * sizeof(Text))
    cdef Py_ssize_t i
    cdef bytes text
    if texts == NULL:
        raise MemoryError
    try:
        for i in range(len(given)):
            text = given[i]
            texts[i].text = text
            texts[i].size = len(text)
    except TypeError:
        free(texts)
        raise
    return texts


cdef class Contender:
    """A set of (filter, id); subclasses say how it is kept.

    One syntax each, "amqp" or "mqtt". For one thread at a time; `share` says what several may do.
    """

    def __cinit__(self, str syntax="amqp"):
        self.syntax = syntax
        self.separator = SEPARATORS[syntax][0]
        self.mqtt = syntax == "mqtt"

    def __dealloc__(self):
        lock_free(self.lock)

    cdef int add(self, const Word* words, int count, uint32_t id) noexcept nogil:
        return UNABLE

    cdef int drop(self, const Word* words, int count, uint32_t id) noexcept nogil:
        return UNABLE

    cdef void find(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        pass

    cdef bint find_among_readers(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        """`find`, while other readers do the same. False: it has to be alone, because it would change something."""
        self.find(topic, size, found)
        return True

    cdef void find_locked(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef bint done
        if self.lock == NULL:
            self.find(topic, size, found)
            return
        lock_shared(self.lock)
        done = self.find_among_readers(topic, size, found)
        lock_release(self.lock)
        if not done:
            lock_alone(self.lock)
            self.find(topic, size, found)
            lock_release(self.lock)

    cdef int add_locked(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef int outcome
        if self.lock == NULL:
            return self.add(words, count, id)
        lock_alone(self.lock)
        outcome = self.add(words, count, id)
        lock_release(self.lock)
        return outcome

    cdef int drop_locked(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef int outcome
        if self.lock == NULL:
            return self.drop(words, count, id)
        lock_alone(self.lock)
        outcome = self.drop(words, count, id)
        lock_release(self.lock)
        return outcome

    cdef int cut_topic(self, const unsigned char* topic, size_t size, Word* words) noexcept nogil:
        """The words; -1: too many. An empty AMQP key has none."""
        if size == 0 and not self.mqtt:
            return 0
        return split(topic, size, self.separator, words)

    cdef int cut_filter(self, const unsigned char* text, size_t size, Word* words) noexcept nogil:
        """The words with their kinds; -1: too many, or MQTT's `#` before the end."""
        cdef int count = self.cut_topic(text, size, words)
        cdef unsigned char one = b"+" if self.mqtt else b"*"
        cdef int i
        for i in range(count):
            words[i].kind = LITERAL
            if words[i].size == 1:
                if words[i].text[0] == one:
                    words[i].kind = ONE
                elif words[i].text[0] == b"#":
                    words[i].kind = MANY
                    if self.mqtt and i != count - 1:
                        return -1
        return count

    def _changed(self, filter, id, bint insert):
        cdef Word words[MOST_WORDS]
        cdef bytes text = filter.encode() if isinstance(filter, str) else filter
        cdef int count = self.cut_filter(text, len(text), words)
        cdef int outcome
        if count < 0:
            raise ValueError(f"not a filter of {self.syntax}: {filter!r}")
        outcome = self.add(words, count, id) if insert else self.drop(words, count, id)
        if outcome == NO_MEMORY:
            raise MemoryError
        if outcome == UNABLE:
            raise NotImplementedError(f"{type(self).__name__} cannot hold {filter!r}")
        return outcome == DONE

    def insert(self, filter, id):
        """Whether it is new. NotImplementedError: no filter for this contender; ValueError: no filter at all."""
        return self._changed(filter, id, True)

    def remove(self, filter, id):
        """Whether it was there."""
        return self._changed(filter, id, False)

    def match(self, topic):
        """The ids of the filters that match: ascending, each once."""
        cdef bytes text = topic.encode() if isinstance(topic, str) else topic
        cdef Found found = Found(NULL, 0, 0, False)
        cdef size_t i, kept = 0
        try:
            self.find(text, len(text), &found)
            if found.lost:
                raise MemoryError
            if found.count > 1:
                qsort(found.ids, found.count, sizeof(uint32_t), ascending)
                for i in range(found.count):
                    if kept == 0 or found.ids[i] != found.ids[kept - 1]:
                        found.ids[kept] = found.ids[i]
                        kept += 1
                found.count = kept
            return tuple([found.ids[i] for i in range(found.count)])
        finally:
            free(found.ids)

    def share(self):
        """From now on several threads may call `mix`: each match and each change takes a lock."""
        if self.lock == NULL:
            self.lock = lock_new()
            if self.lock == NULL:
                raise MemoryError

    def forget(self):
        """Results of earlier topics are forgotten, where they are kept: before a pass over `cold` topics."""

    def bench(self, list topics, int passes):
        """(ns a topic of the quickest of `passes`, ids found in one pass); topics are bytes."""
        cdef Text* texts = texts_of(topics)
        cdef Py_ssize_t i, count = len(topics)
        cdef Found found = Found(NULL, 0, 0, False)
        cdef int64_t start, best = -1, spent
        cdef size_t total = 0
        cdef int round
        with nogil:
            for round in range(passes):
                total = 0
                start = thread_ns()
                for i in range(count):
                    found.count = 0
                    self.find(texts[i].text, texts[i].size, &found)
                    total += found.count
                spent = thread_ns() - start
                if best < 0 or spent < best:
                    best = spent
        free(texts)
        free(found.ids)
        if found.lost:
            raise MemoryError
        return best / max(count, 1), total

    def spread(self, list topics, int passes):
        """ns of each topic, the least of the passes over all of them, without what reading the clock costs.

        By the wall clock, which alone is cheap enough to read twice a match; the least of several passes has
        no interruption in it.
        """
        cdef Text* texts = texts_of(topics)
        cdef Py_ssize_t i, count = len(topics)
        cdef int64_t* least = <int64_t*> malloc((count + 1) * sizeof(int64_t))
        cdef Found found = Found(NULL, 0, 0, False)
        cdef int64_t start, spent, idle = 1 << 62
        cdef int round
        if least == NULL:
            free(texts)
            raise MemoryError
        with nogil:
            for round in range(passes):
                for i in range(count):
                    start = clock_ns(CLOCK_MONOTONIC)
                    idle = min(idle, clock_ns(CLOCK_MONOTONIC) - start)
                    found.count = 0
                    start = clock_ns(CLOCK_MONOTONIC)
                    self.find(texts[i].text, texts[i].size, &found)
                    spent = clock_ns(CLOCK_MONOTONIC) - start
                    least[i] = spent if round == 0 else min(least[i], spent)
        try:
            if found.lost:
                raise MemoryError
            return [max(least[i] - idle, 0) for i in range(count)]
        finally:
            free(texts)
            free(least)
            free(found.ids)

    def mix(
        self, list topics, list filters, ids, int reads, Py_ssize_t operations,
        uint64_t seed=1, Py_ssize_t part=0, Py_ssize_t parts=1,
    ):
        """ns an operation: `reads` of a thousand are matches of a topic by chance, the rest changes in turns:
        a filter by chance is removed, and one removed a while ago is inserted again. All filters are in
        before and after. Several threads may each take one of several parts of the filters. ValueError: too few.
        """
        cdef Text* texts = NULL
        cdef Text* held = NULL
        cdef uint32_t* held_ids = <uint32_t*> malloc((len(filters) + 1) * sizeof(uint32_t))
        cdef Py_ssize_t i, count = len(topics)
        cdef Py_ssize_t mine = len(filters) // parts
        cdef Py_ssize_t first = part * mine
        cdef Py_ssize_t out[OUT]
        cdef Py_ssize_t removed = 0, back = 0, chosen
        cdef Found found = Found(NULL, 0, 0, False)
        cdef Word words[MOST_WORDS]
        cdef int64_t spent
        cdef int n, outcome = DONE
        cdef uint64_t dice = hash_pair(seed, 1) | 1
        if reads < 1_000 and mine <= 2 * OUT:
            free(held_ids)
            raise ValueError(f"{mine} filters to change; it takes more than {2 * OUT}")
        try:
            texts = texts_of(topics)
            held = texts_of(filters)
            if held_ids == NULL:
                raise MemoryError
            for i in range(len(filters)):
                held_ids[i] = ids[i]
        except BaseException:
            free(texts)
            free(held)
            free(held_ids)
            raise
        for i in range(OUT):
            out[i] = -1
        with nogil:
            spent = thread_ns()
            for i in range(operations):
                dice ^= dice << 13
                dice ^= dice >> 7
                dice ^= dice << 17
                if <int> ((dice >> 32) % 1000) < reads:
                    chosen = <Py_ssize_t> (<uint32_t> dice % <size_t> count)
                    found.count = 0
                    self.find_locked(texts[chosen].text, texts[chosen].size, &found)
                    continue
                if removed - back < OUT // 2 or (removed - back < OUT and (removed + back) % 2 == 0):
                    chosen = first + <Py_ssize_t> (<uint32_t> dice % <size_t> mine)
                    n = self.cut_filter(held[chosen].text, held[chosen].size, words)
                    outcome = self.drop_locked(words, n, held_ids[chosen])
                    if outcome == DONE:  # else it is out already
                        out[removed % OUT] = chosen
                        removed += 1
                else:
                    chosen = out[back % OUT]
                    n = self.cut_filter(held[chosen].text, held[chosen].size, words)
                    outcome = self.add_locked(words, n, held_ids[chosen])
                    back += 1
                if outcome < 0:
                    break
            spent = thread_ns() - spent
            while back < removed and outcome >= 0:
                chosen = out[back % OUT]
                n = self.cut_filter(held[chosen].text, held[chosen].size, words)
                outcome = self.add_locked(words, n, held_ids[chosen])
                back += 1
        free(texts)
        free(held)
        free(held_ids)
        free(found.ids)
        if outcome < 0 or found.lost:
            raise MemoryError
        return spent / max(operations, 1)

    @property
    def nbytes(self):
        """What it takes: every block as malloc rounds it."""
        return self.taken
