# cython: language_level=3, cdivision=True
"""A topic behind key words: one call for what would be a search, a tuple and a comparison for each of them.

    KeyedIndex(index) --search(keys, syntax)--> KeyedSearch --least(topic, bits)--> the smallest id behind these keys

An index whose filters stand behind key words (`key/site/+/temp`) is many tables in one. Who asks several of them for
one topic, and needs only the smallest id of all, asks here. The keys are packed into one block when a search is made,
so that asking touches few lines of memory, and up to TOGETHER of them are searched for in turn, a step of each
(probe.pxd): what one of them waits for from memory comes while the others are worked on.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memcmp, memcpy, memset

from matchcore.allocator cimport numbers_free
from matchcore.buckets cimport Buckets
from matchcore.filters cimport FilterIndex
from matchcore.probe cimport Batch, buckets_ask, buckets_locate, buckets_records
from matchcore.slots cimport slot_ids
from matchcore.syntax cimport Fault, View, separator_of, syntax_of, topic_error
from matchcore.topic cimport topic_free, topic_init

__all__ = ["IdAnswers", "KeyedIndex", "KeyedSearch"]

cdef enum:
    NOTHING = -1        # no id
    SHORT_BYTES = 1024  # of the texts of one step: these are on the stack


cdef class IdAnswers:
    """For each id below `size`: how often it was the answer, and an object that is kept for it.

    Both lie in one line of memory, and take none before they are used. `kept_max` objects are kept, then all are
    dropped. They must refer to no object that has references of its own: the garbage collector does not see them.
    """

    def __cinit__(self, size_t size, uint32_t kept_max):
        self.size = size
        self.kept_max = kept_max
        self.items = <IdAnswer*> calloc(size + 1, sizeof(IdAnswer))
        self.kept = <uint32_t*> calloc(kept_max + 1, sizeof(uint32_t))
        if self.items == NULL or self.kept == NULL:
            raise MemoryError()

    def __dealloc__(self):
        if self.items != NULL and self.kept != NULL:
            self.drop()
        free(self.items)
        free(self.kept)

    cdef int check(self, size_t id) except -1:
        if id >= self.size:
            raise IndexError(f"{id} is not below {self.size}")
        return 0

    cdef void drop(self) noexcept:
        cdef PyObject* held
        while self.kept_count != 0:
            self.kept_count -= 1
            held = self.items[self.kept[self.kept_count]].held
            self.items[self.kept[self.kept_count]].held = NULL
            Py_DECREF(<object> held)

    def __len__(self):
        return self.size

    def __getitem__(self, size_t id):
        """What is kept for an id; None: nothing."""
        self.check(id)
        return None if self.items[id].held == NULL else <object> self.items[id].held

    def keep(self, size_t id, object held not None):
        """Keep an object for an id that has none."""
        self.check(id)
        if self.items[id].held != NULL:
            raise ValueError(f"there is an object for {id}")
        if self.kept_max == 0:
            return
        if self.kept_count == self.kept_max:
            self.drop()
        Py_INCREF(held)
        self.items[id].held = <PyObject*> held
        self.kept[self.kept_count] = id
        self.kept_count += 1

    def forget(self):
        """Keep nothing."""
        self.drop()

    def add(self, size_t id):
        """An id was the answer once more."""
        self.check(id)
        self.items[id].count += 1

    def count(self, size_t id):
        """How often it was."""
        self.check(id)
        return self.items[id].count


cdef class KeyedIndex:
    """Makes searches of an index, and has what they need meanwhile. Ids with a selector are left out."""

    def __cinit__(self, FilterIndex index not None):
        self.index = index
        self.made = 0
        self.allocator.bytes = 0
        self.allocator.allowance = -1
        memset(self.searches, 0, sizeof(self.searches))

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(TOGETHER):
            if i < self.made:
                topic_free(&self.searches[i].topic, &self.allocator)
            numbers_free(&self.allocator, &self.searches[i].found)

    def search(self, tuple keys not None, str syntax not None):
        """A search behind some keys, each with its bits and its places: (key, bits, ((place, words), ...)).

        A key ends in the separator of the syntax. It counts where one of its bits is asked for, and for topics in
        which one of the words stands in each place: from 1, or from -1 for the last word.
        """
        return KeyedSearch(self, keys, syntax)

    cdef int least(self, View* views, uint32_t count, uint32_t syntax, int64_t* least) except -1:
        """The smallest id of one step's texts, if it is smaller than `least`, or that is NOTHING."""
        cdef FilterIndex index = self.index
        cdef const Buckets* buckets = &index.tiers.buckets if index.tiers.buckets.live != 0 else NULL
        cdef Batch[TOGETHER] batches
        cdef KeyedScratch* one
        cdef const uint32_t* ids
        cdef Fault fault
        cdef size_t held, j
        cdef uint32_t i
        cdef int status = 0
        while self.made < count:
            if topic_init(&self.searches[self.made].topic, &self.allocator, index.limits.words) < 0:
                raise MemoryError()
            self.made += 1
        for i in range(count):
            one = &self.searches[i]
            one.found.size = 0
            if index._read_topic(&views[i], syntax, &one.topic, &fault) < 0:
                raise topic_error(&views[i], syntax, &index.limits, &fault, None)
            if buckets != NULL:
                status |= buckets_ask(buckets, &one.topic, False, &one.found, &self.allocator, &batches[i])
        if buckets != NULL:
            for i in range(count):
                status |= buckets_locate(&batches[i])
            for i in range(count):
                status |= buckets_records(&batches[i])
        for i in range(count):
            one = &self.searches[i]
            if index._others(&views[i], syntax, &one.topic, &self.allocator, &one.found) < 0 or status < 0:
                raise MemoryError()
            for j in range(one.found.size):
                ids = slot_ids(&index.slots, one.found.items[j], &held)
                if least[0] == NOTHING or ids[0] < least[0]:  # they are ascending
                    least[0] = ids[0]
        return 0


cdef class KeyedSearch:
    """One question, made once and asked for many topics: the smallest id behind any of its keys."""

    def __cinit__(self, KeyedIndex index not None, tuple keys not None, str syntax not None):
        self.index = index
        self.syntax = syntax_of(syntax)
        cdef list all_places = [each for _, _, places in keys for each in places]
        cdef list all_words = [_bytes(word) for _, words in all_places for word in words]
        cdef size_t text = sum(map(len, all_words)) + sum(len(_bytes(key)) for key, _, _ in keys)
        cdef size_t records = (
            len(keys) * sizeof(PackedKey) + len(all_places) * sizeof(PackedPlace)
            + len(all_words) * sizeof(PackedWord)
        )
        if records + text <= sizeof(self.inside):
            self.keys = <PackedKey*> self.inside
        else:
            self.keys = <PackedKey*> PyMem_Malloc(records + text)
        if self.keys == NULL:
            raise MemoryError()
        cdef PackedPlace* place_at = <PackedPlace*> (self.keys + len(keys))
        cdef PackedWord* word_at = <PackedWord*> (place_at + len(all_places))
        cdef char* at = <char*> (word_at + len(all_words))
        self.places, self.words, self.text = place_at, word_at, at
        self.count = 0
        for key, bits, places in keys:
            self.keys[self.count].text = _packed(self.text, &at, key)
            self.keys[self.count].bits = bits
            self.keys[self.count].places = len(places)
            self.count += 1
            for place, words in places:
                place_at.place = place
                place_at.words = len(words)
                place_at += 1
                for word in words:
                    word_at[0] = _packed(self.text, &at, word)
                    word_at += 1

    def __dealloc__(self):
        if self.keys != <PackedKey*> self.inside:
            PyMem_Free(self.keys)

    def least(self, bytes topic not None, uint32_t bits, IdAnswers answers=None):
        """The smallest id under a filter that matches `key + topic`, for any key with one of the bits; None: none.

        answers  where the id is counted. Raises InvalidTopic as `match` does, with the key before the topic.
        """
        cdef int64_t least = NOTHING
        self.find(PyBytes_AS_STRING(topic), PyBytes_GET_SIZE(topic), bits, &least)
        if least == NOTHING:
            return None
        if answers is not None and <size_t> least < answers.size:
            answers.items[least].count += 1
        return least

    def answer(self, bytes topic not None, uint32_t bits, IdAnswers answers not None):
        """What the answers hold for the smallest id that matches, or the id itself if they hold nothing for it. The id
        is counted as used. None if no id matches.

        It is `least` and a look into the answers in one call. Ids are below the size of the answers.
        """
        cdef int64_t least = NOTHING
        cdef IdAnswer* item
        self.find(PyBytes_AS_STRING(topic), PyBytes_GET_SIZE(topic), bits, &least)
        if least == NOTHING:
            return None
        answers.check(least)
        item = &answers.items[least]
        item.count += 1
        return least if item.held == NULL else <object> item.held

    cdef int find(self, const char* topic, size_t size, uint32_t bits, int64_t* least) except -1:
        cdef char[SHORT_BYTES] short
        cdef char* room = short
        cdef size_t left = SHORT_BYTES
        cdef View[TOGETHER] views
        cdef bytes kept = None
        cdef const PackedKey* key
        cdef const PackedPlace* place = self.places
        cdef const PackedWord* word = self.words
        cdef uint32_t i, together = 0
        for i in range(self.count):
            key = &self.keys[i]
            if not self.counts_for(key, &place, &word, topic, size, bits):
                continue
            if together == TOGETHER or (together != 0 and key.text.size + size > left):
                self.index.least(views, together, self.syntax, least)
                together, room, left = 0, short, SHORT_BYTES
            if key.text.size + size > left:  # it is long, and goes alone
                kept = bytes(key.text.size + size)
                room, left = PyBytes_AS_STRING(kept), key.text.size + size
            memcpy(room, self.text + key.text.at, key.text.size)
            memcpy(room + key.text.size, topic, size)
            views[together].start, views[together].size, views[together].is_str = room, key.text.size + size, False
            room += views[together].size
            left -= views[together].size
            together += 1
        if together != 0:
            self.index.least(views, together, self.syntax, least)
        return 0

    cdef bint counts_for(
        self, const PackedKey* key, const PackedPlace** place, const PackedWord** word, const char* topic, size_t size,
        uint32_t bits
    ) noexcept:
        """Has it one of the bits, and does a word of each place stand there? `place` and `word` go on to the next key.
        """
        cdef const char* at = NULL
        cdef Py_ssize_t held = 0
        cdef uint32_t j
        cdef bint all_stand = key.bits & bits != 0
        cdef bint one_stands
        for _ in range(key.places):
            one_stands = False
            if all_stand and word_at(topic, size, separator_of(self.syntax), place[0].place, &at, &held):
                for j in range(place[0].words):
                    if word[0][j].size == <size_t> held and memcmp(self.text + word[0][j].at, at, held) == 0:
                        one_stands = True
                        break
            all_stand = all_stand and one_stands
            word[0] += place[0].words
            place[0] += 1
        return all_stand


cdef bytes _bytes(object text):
    if not isinstance(text, bytes):
        raise TypeError("keys and words are bytes")
    return text


cdef PackedWord _packed(const char* start, char** at, bytes text):
    """Copies a text to `at`, which goes on behind it; where it is."""
    cdef PackedWord made
    made.at = <uint32_t> (at[0] - start)
    made.size = <uint32_t> PyBytes_GET_SIZE(text)
    memcpy(at[0], PyBytes_AS_STRING(text), made.size)
    at[0] += made.size
    return made


cdef bint word_at(
    const char* start, size_t length, char separator, Py_ssize_t place, const char** at, Py_ssize_t* size
) noexcept:
    """Where the word in a place is, from 1, or from -1 at the end. False: the topic has fewer words."""
    cdef const char* end = start + length
    cdef const char* stop
    if start == end or place == 0:
        return False
    if place > 0:
        while True:
            stop = <const char*> memchr(start, separator, end - start)
            place -= 1
            if place == 0:
                at[0] = start
                size[0] = (end if stop is NULL else stop) - start
                return True
            if stop is NULL:
                return False
            start = stop + 1
    while True:
        stop = end
        while stop > start and stop[-1] != separator:
            stop -= 1
        place += 1
        if place == 0:
            at[0] = stop
            size[0] = end - stop
            return True
        if stop == start:
            return False
        end = stop - 1
