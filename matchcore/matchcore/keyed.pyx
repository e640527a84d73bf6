# cython: language_level=3, cdivision=True
# cython: binding=False
"""A topic behind key words: one call for what would be a search, a tuple and a comparison for each of them.

    KeyedIndex(index) --search(keys, syntax)--> KeyedSearch --least(topic, bits)--> the smallest id behind these keys

An index whose filters stand behind key words (`key/site/+/temp`) is many tables in one. Who asks several of them for
one topic, and needs only the smallest id of all, asks here. The keys are packed into one block when a search is made,
so that asking touches few lines of memory, and up to TOGETHER of them are searched for in turn, a step of each
(probe.pxd): what one of them waits for from memory comes while the others are worked on. A topic is read once for all
keys, and a key is looked up in the dictionary once for each state of the index, not for each topic.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from matchcore.allocator cimport numbers_free, prefetch
from matchcore.buckets cimport Buckets
from matchcore.filters cimport INVALID, NO_MEMORY, FilterIndex
from matchcore.hashing cimport hash_word
from matchcore.key_texts cimport PackedKey, PackedPlace, PackedWord, behind_key, hash_of, put_together, word_at
from matchcore.probe cimport Batch, buckets_ask, buckets_ask_all, buckets_have_few, buckets_locate, buckets_records
from matchcore.reading cimport topic_read
from matchcore.slots cimport slot_ids
from matchcore.syntax cimport Limits, View, separator_of, syntax_of, topic_error
from matchcore.table cimport table_prefetch
from matchcore.tiers cimport Tiers
from matchcore.topic cimport Topic, topic_free, topic_init
from matchcore.words cimport Words, words_find

__all__ = ["IdAnswers", "KeyedIndex", "KeyedSearch"]

cdef enum:
    NOTHING = -1        # no id
    SHORT_BYTES = 1024  # of a key and a topic together: a longer one is asked for alone
    LONGEST_KEY = 64    # the same
    UNKNOWN = -1        # no version
    YES = 1             # of the number of an id: the answer, and behind it how often it was
    ONCE = 2


WORD_ENDS = frozenset(b"./+*#\0")


cdef class IdAnswers:
    """For each id yes or no, as the bytes of `given` are (0: no), and how often it was the answer.

    Both are one number, so that they are one wait for memory.
    """

    def __cinit__(self, const unsigned char[::1] given not None):
        cdef size_t id
        self.size = given.shape[0]
        self.items = <uint64_t*> calloc(self.size + 1, sizeof(uint64_t))
        if self.items == NULL:
            raise MemoryError()
        for id in range(self.size):
            self.items[id] = given[id] != 0

    def __dealloc__(self):
        free(self.items)

    cdef int check(self, size_t id) except -1:
        if id >= self.size:
            raise IndexError(f"{id} is not below {self.size}")
        return 0

    def __len__(self):
        return self.size

    def __getitem__(self, size_t id):
        self.check(id)
        return self.items[id] & YES != 0

    def add(self, size_t id):
        """An id was the answer once more."""
        self.check(id)
        self.items[id] += ONCE

    def count(self, size_t id):
        """How often it was."""
        self.check(id)
        return self.items[id] // ONCE


cdef class KeyedIndex:
    """Makes searches of an index, and has what they need meanwhile. Ids with a selector are left out.

    answers  what `KeyedSearch.ask` answers, by id
    bits     the bits that it asks for, by what it is asked
    others   and what it answers where there is no id: True or False
    """

    def __cinit__(self, FilterIndex index not None, IdAnswers answers=None, dict bits=None, dict others=None):
        self.index = index
        self.answers = IdAnswers(b"") if answers is None else answers
        self.bits = {} if bits is None else bits
        self.others = {} if others is None else others
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

    def search(self, tuple keys not None):
        """A search behind some keys, each with its bits and its places: (key, bits, ((place, words), ...)).

        A key is one word. It counts where one of its bits is asked for, and for topics in which one of the words stands
        in each place: from 1, or from -1 for the last word.
        """
        cdef KeyedSearch made = KeyedSearch()
        made.begin(self, keys)
        return made

    cdef int least(
        self, KeyedSearch search, const uint32_t* chosen, uint32_t count, const char* topic, size_t size,
        uint32_t syntax, int64_t* least
    ) except -1:
        """The smallest id behind the keys that were chosen, if it is smaller than `least`, or that is NOTHING.

        1: the topic is invalid behind one of them. The words of a topic are looked up once for all keys, in the room of
        the first search behind the place of the key; the others have copies.
        """
        cdef FilterIndex index = self.index
        # Without the sieve, which would be one more wait for memory, key by key: the lines behind it come all at once.
        cdef Buckets copied = index.tiers.buckets
        cdef const Buckets* buckets = &copied if copied.live != 0 else NULL
        cdef const Words* words = &index.tiers.words
        cdef Batch[TOGETHER] batches
        cdef char[SHORT_BYTES] text
        cdef Topic bare
        cdef Topic* one
        cdef View view
        cdef Limits limits = index.limits
        cdef Fault fault
        cdef uint32_t i
        cdef int status = 0
        cdef bint few
        copied.table.sieve.bits = NULL
        while self.made < count:
            if topic_init(&self.searches[self.made].topic, &self.allocator, index.limits.words) < 0:
                raise MemoryError()
            self.made += 1
        if words.live == 0 or limits.words < 2 or size > SHORT_BYTES - LONGEST_KEY - 1:
            return self.least_singly(search, chosen, count, topic, size, syntax, least)
        limits.words -= 1
        bare = self.searches[0].topic
        bare.ids += 1
        bare.rows += 1
        bare.positions += 1
        if topic_read(&bare, words, index.tiers.secret, topic, size, syntax, &limits, &fault) < 0:
            return self.least_singly(search, chosen, count, topic, size, syntax, least)
        few = buckets != NULL and buckets_have_few(buckets)
        if buckets != NULL and not few:
            for i in range(bare.count):
                prefetch(&index.tiers.classes.rows.units[bare.rows[i]])
        for i in range(count):
            if search.keys[chosen[i]].size > LONGEST_KEY or search.keys[chosen[i]].size + 1 + size > limits.bytes:
                return self.least_singly(search, chosen, count, topic, size, syntax, least)
        for i in range(count):
            one = &self.searches[i].topic
            behind_key(one, &bare, words, &search.keys[chosen[i]], search.text)
            self.searches[i].found.size = 0
            if index.slots.exact != 0:
                put_together(&view, text, &search.keys[chosen[i]], search.text, topic, size, syntax)
                one.hash = hash_of(&view, separator_of(syntax), index.tiers.secret)
                table_prefetch(&index.slots.table, <uint32_t> (one.hash >> 32))
            if few:
                status |= buckets_ask_all(
                    buckets, one, &self.searches[i].found, &self.allocator, &batches[i]
                )
            elif buckets != NULL:
                status |= buckets_ask(
                    buckets, one, False, &self.searches[i].found, &self.allocator, &batches[i]
                )
        if buckets != NULL:
            for i in range(count):
                status |= buckets_locate(&batches[i])
            for i in range(count):
                status |= buckets_records(&batches[i])
        for i in range(count):
            if index.slots.exact != 0:
                put_together(&view, text, &search.keys[chosen[i]], search.text, topic, size, syntax)
            if index._others(
                &view, syntax, &self.searches[i].topic, &self.allocator, &self.searches[i].found
            ) < 0 or status < 0:
                raise MemoryError()
            self.look_at(i, least)
        return 0

    cdef void look_at(self, uint32_t i, int64_t* least) noexcept:
        """The ids of what a search found."""
        cdef const Numbers* found = &self.searches[i].found
        cdef const uint32_t* ids
        cdef size_t held, j
        for j in range(found.size):
            ids = slot_ids(&self.index.slots, found.items[j], &held)
            if least[0] == NOTHING or ids[0] < least[0]:  # they are ascending
                least[0] = ids[0]

    cdef int least_singly(
        self, KeyedSearch search, const uint32_t* chosen, uint32_t count, const char* topic, size_t size,
        uint32_t syntax, int64_t* least
    ) except -1:
        """The same as `least`, one key after the other, for whatever topic; it keeps what is wrong with it."""
        cdef KeyedScratch* one = &self.searches[0]
        cdef const PackedKey* key
        cdef View view
        cdef bytes text
        cdef uint32_t hit, i
        cdef int status
        for i in range(count):
            key = &search.keys[chosen[i]]
            text = bytes(key.size + 1 + size)
            put_together(&view, PyBytes_AS_STRING(text), key, search.text, topic, size, syntax)
            status = self.index.find(
                &view, syntax, False, &one.topic, &self.allocator, &one.found, &self.fault, &hit
            )
            if status == INVALID:
                self.wrong = text
                return 1
            if status == NO_MEMORY:
                raise MemoryError()
            self.look_at(0, least)
        return 0


cdef class KeyedSearch:
    """One question, made once and asked for many topics: the smallest id behind any of its keys.

    A class may be derived from it, so that what asks lies beside what it asks with.
    """

    def __dealloc__(self):
        self.drop()

    cdef void drop(self) noexcept:
        if self.keys != <PackedKey*> self.inside:
            PyMem_Free(self.keys)
        self.keys = NULL
        self.count = 0

    def begin(self, KeyedIndex index not None, tuple keys not None):
        """Ask an index from now on, behind these keys: see KeyedIndex.search."""
        cdef list all_places = [each for _, _, places in keys for each in places]
        cdef list all_words = [_bytes(word) for _, words in all_places for word in words]
        cdef size_t text = sum(map(len, all_words)) + sum(len(_bytes(key)) for key, _, _ in keys)
        if not all(key and not WORD_ENDS.intersection(key) for key, _, _ in keys):
            raise ValueError("a key is one word, and no wildcard")
        cdef size_t records = (
            len(keys) * sizeof(PackedKey) + len(all_places) * sizeof(PackedPlace)
            + len(all_words) * sizeof(PackedWord)
        )
        self.drop()
        if records + text <= sizeof(self.inside):
            self.keys = <PackedKey*> self.inside
        else:
            self.keys = <PackedKey*> PyMem_Malloc(records + text)
        if self.keys == NULL:
            raise MemoryError()
        self.index = index
        self.version = UNKNOWN
        cdef PackedPlace* place_at = <PackedPlace*> (self.keys + len(keys))
        cdef PackedWord* next_word = <PackedWord*> (place_at + len(all_places))
        cdef char* at = <char*> (next_word + len(all_words))
        cdef PackedWord packed
        self.places, self.words, self.text = place_at, next_word, at
        for key, bits, places in keys:
            packed = _packed(self.text, &at, key)
            self.keys[self.count].at = packed.at
            self.keys[self.count].size = packed.size
            self.keys[self.count].bits = bits
            self.keys[self.count].places = len(places)
            self.keys[self.count].word = self.keys[self.count].row = 0
            self.count += 1
            for place, words in places:
                place_at.place = place
                place_at.words = len(words)
                place_at += 1
                for word in words:
                    next_word[0] = _packed(self.text, &at, word)
                    next_word += 1

    def end(self):
        """Ask nothing any more."""
        self.drop()
        self.index = None

    def ask(self, object kind, object topic, object syntax):
        """The answer for the smallest id behind keys that have one of the index's bits for this kind: True or False.

        A yes is counted, a no is not: who goes on to ask why counts it. Where there is no id, it is what the index has
        among its `others`. What is not found like that is asked of `ask_otherwise`, with the same arguments: where
        `begin` was not called, a topic that is empty, invalid or begins with `$`, an id without an answer.
        """
        cdef int64_t least = NOTHING
        cdef IdAnswers answers
        cdef PyObject* other
        cdef const char* text
        prefetch(self.inside)
        prefetch(&self.inside[8])
        if self.keys != NULL and type(topic) is bytes and PyBytes_GET_SIZE(<bytes> topic) != 0:
            text = PyBytes_AS_STRING(<bytes> topic)
            if text[0] != c"$" and self.find(
                text, PyBytes_GET_SIZE(<bytes> topic), syntax_of(syntax), self.index.bits[kind], &least
            ) == 0:
                answers = self.index.answers
                if least == NOTHING:
                    other = PyDict_GetItemWithError(self.index.others, kind)
                    if other != NULL:
                        return <object> other
                elif <size_t> least < answers.size:
                    if not answers.items[least] & YES:
                        return False
                    answers.items[least] += ONCE
                    return True
        return self.ask_otherwise(kind, topic, syntax)

    def ask_otherwise(self, object kind, object topic, object syntax):
        """Of a derived class."""
        raise NotImplementedError

    def least(self, bytes topic not None, uint32_t bits, str syntax not None):
        """The smallest id under a filter that matches `key + topic`, for any key with one of the bits; None: none.

        Raises InvalidTopic as `match` does, with the key before the topic.
        """
        cdef int64_t least = NOTHING
        cdef View view
        if self.keys == NULL:
            return None
        if self.find(PyBytes_AS_STRING(topic), PyBytes_GET_SIZE(topic), syntax_of(syntax), bits, &least) != 0:
            view.start, view.size = PyBytes_AS_STRING(self.index.wrong), PyBytes_GET_SIZE(self.index.wrong)
            view.is_str = False
            raise topic_error(&view, syntax_of(syntax), &self.index.index.limits, &self.index.fault, None)
        return None if least == NOTHING else least

    cdef int find(self, const char* topic, size_t size, uint32_t syntax, uint32_t bits, int64_t* least) except -1:
        """0 done, 1 the topic is invalid behind a key."""
        cdef uint32_t[TOGETHER] chosen
        cdef const PackedPlace* place = self.places
        cdef const PackedWord* word = self.words
        cdef const Tiers* tiers = &self.index.index.tiers
        cdef char separator = separator_of(syntax)
        cdef uint32_t i, together = 0
        if self.version != self.index.index.version:
            self.look_up()
        for i in range(self.count):
            if not self.counts_for(&self.keys[i], &place, &word, topic, size, separator, bits):
                continue
            prefetch(&tiers.words.entries[self.keys[i].word])
            prefetch(&tiers.classes.rows.units[self.keys[i].row])
            if together == TOGETHER:
                if self.index.least(self, chosen, together, topic, size, syntax, least) != 0:
                    return 1
                together = 0
            chosen[together] = i
            together += 1
        if together != 0:
            return self.index.least(self, chosen, together, topic, size, syntax, least)
        return 0

    cdef void look_up(self) noexcept:
        """The index has changed: other words have the numbers that are kept here."""
        cdef const Words* words = &self.index.index.tiers.words
        cdef PackedKey* key
        cdef uint32_t i
        for i in range(self.count):
            key = &self.keys[i]
            key.word = words_find(
                words, self.text + key.at, key.size,
                hash_word(self.index.index.tiers.secret, self.text + key.at, key.size),
            )
            key.row = words.entries[key.word].rows if words.live != 0 else 0
        self.version = self.index.index.version

    cdef bint counts_for(
        self, const PackedKey* key, const PackedPlace** place, const PackedWord** word, const char* topic, size_t size,
        char separator, uint32_t bits
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
            if all_stand and word_at(topic, size, separator, place[0].place, &at, &held):
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
