# cython: language_level=3, annotation_typing=False, cdivision=True
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""FilterIndex: topic filters in, a topic name asked, ids out. The picture is in filters.pxd.

Here it is asked; what it holds, and how it changes, is in filter_table.pyx.

Threads: every public call holds the GIL from the scan of its arguments to the end of its change or its
search, and runs no Python code meanwhile, so calls are atomic: any number of readers beside any number of
writers. But match_many searches without the GIL, several beside each other; a change waits until those
that run are done, and while one waits, a match_many that begins keeps the GIL, so that its turn comes.
(The module does not declare itself free-threaded: there CPython keeps the GIL on.)

Errors: InvalidFilter and InvalidTopic (ValueErrors, see errors.py), ValueError for an id outside
0..2**32-1, TypeError for what is no str, bytes or int, MemoryError with the index as it was.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_New
from libc.string cimport memcpy, memset

from matchcore.allocator cimport numbers_free, numbers_push
from matchcore.ascending cimport FEW_IDS, gather_few
from matchcore.buckets cimport Buckets
from matchcore.classes cimport classes_hit
from matchcore.ids cimport tuple_of_ids
from matchcore.probe cimport buckets_ask, buckets_locate, buckets_records
from matchcore.reading cimport topic_read
from matchcore.results cimport results_free, results_of_slots
from matchcore.row_selector cimport NOT_READY, RowSelector, RowsFound
from matchcore.search cimport pool_match
from matchcore.slots cimport slots_exact, slots_ids_end
from matchcore.syntax cimport syntax_of, topic_error, view_of
from matchcore.table cimport NONE, table_prefetch
from matchcore.topic cimport Topic, topic_forget_words, topic_free, topic_init
from matchcore.topics cimport Topics, take_topics
from matchcore.words cimport Words

__all__ = ["FilterIndex"]

cdef enum:
    KEPT_IDS = 1 << 16  # a larger buffer is given back after the match that needed it: 256 kB
    TRIES = 100         # of a match while other threads, or the fields, change the index


cdef int find_ids(
    void* index, const char* topic, size_t size, uint32_t syntax, const uint32_t** ids, size_t* count
) noexcept:
    cdef FilterIndex asked = <FilterIndex> index
    cdef View view
    cdef Fault fault
    cdef uint32_t hit
    cdef int status
    if asked.results.ids.capacity > KEPT_IDS:
        results_free(&asked.allocator, &asked.results)
    view.start, view.size, view.is_str = topic, size, False
    status = asked.find(
        &view, syntax, False, &asked.topic, &asked.allocator, &asked.results.slots, &fault, &hit
    )
    if status != MATCHED:
        return status
    if hit != NONE:
        classes_hit(&asked.tiers.classes, hit)
    if results_of_slots(&asked.allocator, &asked.results, &asked.slots, 0) < 0:
        return NO_MEMORY
    ids[0], count[0] = asked.results.ids.items, asked.results.ids.size
    return MATCHED


cdef inline tuple ids_of(FilterIndex index, object topic, uint32_t syntax):
    """The ids of the filters that match, without those that have a selector."""
    cdef uint32_t[FEW_IDS] few
    cdef Results results
    cdef size_t count
    index._collect(topic, syntax, False, &index.results)
    count = index.results.slots.size
    if count == 0:
        return ()
    if count <= FEW_IDS:
        # The usual case: not many filters, each with one id.
        count = gather_few(few, index.slots.ids, index.results.slots.items, count)
        if few[count - 1] < slots_ids_end(&index.slots):
            return tuple_of_ids(few, count)
    if results_of_slots(&index.allocator, &index.results, &index.slots, 0) < 0:
        raise MemoryError()
    index._check_out(&results)
    try:
        return tuple_of_ids(results.ids.items, results.ids.size)
    finally:
        index._check_in(&results)


cdef object _rows_begin(RowsFound* found, Topics given):
    """Nothing found yet, and the array of its ends."""
    import numpy  # here: as in `_copied`
    memset(found, 0, sizeof(RowsFound))
    ends = numpy.zeros(given.count + 1, dtype=numpy.int64)
    cdef long long[::1] view = ends
    found.ends = &view[0]
    return ends


cdef class FilterIndex(FilterTable):
    """Topic filters with ids; asked with a topic, it answers with the ids of the filters that match.

    `max_words` (words, 1..1024) and `max_bytes` (bytes, 1..2**30) bound filters and topics alike;
    beyond them InvalidFilter or InvalidTopic is raised. Ids are ints within 0..2**32-1, and one id may
    be under many filters, and one filter hold many ids. Filters and topics are str or bytes, written
    in the syntax "amqp" (the default; also the native one) or "mqtt".
    """

    def __dealloc__(self) -> None:
        results_free(&self.allocator, &self.results)

    # ---- asking ---------------------------------------------------------------------------------

    cdef int find(
        self, const View* view, uint32_t syntax, bint first_only, Topic* topic, Allocator* allocator, Numbers* found,
        Fault* fault, uint32_t* hit
    ) noexcept nogil:
        cdef Batch batch
        cdef int status = 0
        found.size = 0
        hit[0] = NONE
        if self._read_topic(view, syntax, topic, fault) < 0:
            return INVALID
        if first_only:
            # Where a match is likely: the pool is of filters that match often.
            status = self._exact(view, syntax, topic.hash, allocator, found)
            if status == 0 and self.tiers.pool.live.bits != 0:
                status = pool_match(&self.tiers.pool, topic, True, found, allocator)
            if status < 0 or found.size != 0:
                return NO_MEMORY if status < 0 else MATCHED
        if self.tiers.buckets.live != 0:
            status = buckets_ask(&self.tiers.buckets, topic, first_only, found, allocator, &batch)
            if status == 0:
                status = buckets_locate(&batch)
            if status == 0:
                status = buckets_records(&batch)
            hit[0] = batch.hit
        if status >= 0 and not first_only:
            status = self._others(view, syntax, topic, allocator, found)
        return NO_MEMORY if status < 0 else MATCHED

    cdef inline int _read_topic(self, const View* view, uint32_t syntax, Topic* topic, Fault* fault) noexcept nogil:
        cdef const Words* words = &self.tiers.words if self.tiers.words.live != 0 else NULL
        if topic_read(topic, words, self.tiers.secret, view.start, view.size, syntax, &self.limits, fault) < 0:
            return -1
        if self.slots.exact != 0:
            table_prefetch(&self.slots.table, <uint32_t> (topic.hash >> 32))
        if words == NULL and self.tiers.wildcards != 0:
            topic_forget_words(topic)
        return 0

    cdef inline int _others(
        self, const View* view, uint32_t syntax, Topic* topic, Allocator* allocator, Numbers* found
    ) noexcept nogil:
        """What the two tiers add that are no buckets."""
        if self.tiers.pool.live.bits != 0:
            if pool_match(&self.tiers.pool, topic, False, found, allocator) < 0:
                return -1
        return self._exact(view, syntax, topic.hash, allocator, found)

    cdef int _exact(
        self, const View* view, uint32_t syntax, uint64_t hash, Allocator* allocator, Numbers* found
    ) noexcept nogil:
        """How many exact filters match; pushed."""
        cdef uint32_t[2] exact
        cdef int i, count
        if self.slots.exact == 0:
            return 0
        count = slots_exact(&self.slots, view.start, view.size, syntax, hash, exact)
        for i in range(count):
            if numbers_push(allocator, found, exact[i]) < 0:
                return -1
        return count

    cdef int _collect(self, object topic, uint32_t syntax, bint first_only, Results* results) except -1:
        cdef View view
        cdef Fault fault
        cdef uint32_t hit
        cdef int status
        view_of(topic, &view, syntax, False)
        status = self.find(&view, syntax, first_only, &self.topic, &self.allocator, &results.slots, &fault, &hit)
        if status == INVALID:
            raise topic_error(&view, syntax, &self.limits, &fault, None)
        if status == NO_MEMORY:
            raise MemoryError()
        if hit != NONE:
            classes_hit(&self.tiers.classes, hit)
        return 0

    cdef void _check_out(self, Results* results) noexcept nogil:
        results[0] = self.results
        memset(&self.results, 0, sizeof(Results))

    cdef void _check_in(self, Results* results) noexcept nogil:
        # Whoever asked in the meantime has left a set of buffers of its own: one is enough.
        results_free(&self.allocator, &self.results)
        if results.ids.capacity > KEPT_IDS or results.slots.capacity > KEPT_IDS:
            results_free(&self.allocator, results)
        self.results = results[0]

    @staticmethod
    def find_ids():
        """A capsule with the address of `find_ids` (filters.pxd), for compiled code of another distribution."""
        return PyCapsule_New(<void*> find_ids, "matchcore.find_ids", NULL)

    cdef object _new_selecting(self):
        from matchcore.selecting import Selecting  # here: only selectors need it
        return Selecting(FilterIndex(self.limits.words, self.limits.bytes))

    def match(self, topic: str | bytes, *, fields=None, syntax: str = "amqp") -> tuple:
        """The distinct ids of the filters that match, ascending.

        `fields`: what the selectors look at, a dict by the names that `asked` gives; None: there are none.
        """
        cdef tuple selected = None
        if self.selecting is not None:
            selected = self._when_selected(topic, fields, syntax, False)
        found = ids_of(self, topic, syntax_of(syntax))  # called here alone, so that compilers put it in place
        return tuple(sorted({*found, *selected})) if selected else found

    cdef tuple _when_selected(self, object topic, object fields, object syntax, bint first_only):
        """The ids whose selector is true, in the state that the index has on return; None: no selectors any more.

        Fields are read by Python code, and what is found is made a tuple: other threads, and finalizers, may change
        the index meanwhile. A subscription that then has no selector any more, or just got one, is found again.
        """
        cdef uint64_t version
        for _ in range(TRIES):
            version = self.version
            if self.selecting is None:
                return None
            selected = self.selecting.match(topic, fields, syntax, first_only)
            if self.version == version or (selected and first_only):
                return selected
        raise RuntimeError("the FilterIndex changed again and again while the fields were read")

    def match_any(self, topic: str | bytes, *, fields=None, syntax: str = "amqp") -> bool:
        """Whether any filter matches; stops at the first."""
        cdef uint32_t number = syntax_of(syntax)
        if self.selecting is not None and self._when_selected(topic, fields, syntax, True):
            return True
        self._collect(topic, number, True, &self.results)
        return self.results.slots.size != 0

    def asked(self, topic: str | bytes, *, syntax: str = "amqp") -> tuple:
        """The names that selectors look at in messages of this topic, as keys of `fields`; () is the common case.

        What the topic says (`$word[2]`, `$words`) is not among them. A name that no key can give is an Attribute.
        """
        return () if self.selecting is None else self.selecting.asked(topic, syntax)

    def hits(self, fields) -> dict:
        """{id: how many criteria of its selector are true}, under any filter, without those of which none is.

        The criteria are the parts of its outermost AND, OR or AT LEAST. Evaluates all selectors.
        """
        return {} if self.selecting is None else self.selecting.hits(fields)

    def selectors(self) -> list:
        """[(filter, syntax, id, where), ...] of the subscriptions that have a selector."""
        return [] if self.selecting is None else self.selecting.selectors()

    def selected(self, topic: str | bytes, *, fields=None, syntax: str = "amqp", ids=None) -> list:
        """[(filter, syntax, id, tier, key, where, found by), ...]: as `located`, of those whose selector is true.

        found by: through what in the screen of the filter, in words. `ids`: only these; None: all.
        """
        return [] if self.selecting is None else self.selecting.selected(topic, fields, syntax, ids)

    def match_many(self, topics, *, fields=None, offsets=None, syntax: str = "amqp") -> tuple:
        """(offsets, ids): numpy int64 of one more than topics, and uint32; row i is ids[offsets[i]:offsets[i+1]].

        `topics` is an iterable of str and bytes; or, with `offsets` (int64 or int32, as Arrow has them), anything
        with the buffer protocol: topic i is topics[offsets[i]:offsets[i+1]], in bytes, and stays unchanged
        meanwhile. The first invalid one raises InvalidTopic, whose `row` is its index. The search itself runs
        without the GIL, several beside each other; insert and remove wait for it.

        `fields`: a column for each name, of one value a topic. A record batch or a table of Arrow (whatever has
        `__arrow_c_array__` or `__arrow_c_stream__`), or a dict whose columns are Arrow arrays, numpy arrays or
        sequences. A null is absent. Columns that no selector asks for are not looked at. Raises TypeError of an Arrow
        type that selectors do not compare, ValueError of a malformed array and of a column of another length.
        """
        cdef uint32_t number = syntax_of(syntax)
        cdef Topics given = take_topics(topics, offsets, number)
        if self.selecting is None:
            return self._match_many(given, number)
        return self._match_selected(given, number, fields)

    cdef tuple _match_many(self, Topics given, uint32_t number):
        cdef Allocator allocator
        cdef RowsFound plain
        cdef Fault fault
        cdef Py_ssize_t row = 0
        cdef int status
        ends = _rows_begin(&plain, given)  # its own: the answer may be long, and is not kept
        allocator.bytes = 0
        allocator.allowance = self.allocator.allowance
        self._threads_that_are()
        try:
            if self.writers != 0:
                status = self._match_rows(given, number, &allocator, &plain.results, plain.ends, &fault, &row)
            else:
                self._begin_reading()
                try:
                    with nogil:
                        status = self._match_rows(given, number, &allocator, &plain.results, plain.ends, &fault, &row)
                finally:
                    self._end_reading()
            self._raise_of(status, given, number, &fault, row)
            return ends, self._copied(&plain.results)
        finally:
            results_free(&allocator, &plain.results)

    cdef tuple _match_selected(self, Topics given, uint32_t number, object fields):
        """With the ids whose selector is true."""
        cdef object selecting = self.selecting
        from matchcore.rows import ScreenRows  # here: only selectors need it
        cdef RowSelector rows = ScreenRows(selecting, fields, given.count)
        cdef FilterIndex filters = rows.filters
        cdef Allocator allocator
        cdef RowsFound[3] found  # without a selector; numbers of screens; the answer
        cdef Fault fault
        cdef Py_ssize_t row
        cdef int status
        ends = [_rows_begin(&found[0], given), _rows_begin(&found[1], given), _rows_begin(&found[2], given)]
        allocator.bytes = 0
        allocator.allowance = self.allocator.allowance
        try:
            while True:
                rows.prepare()
                self._threads_that_are()
                filters._threads_that_are()
                if self.selecting is not selecting:  # the last selector was removed meanwhile
                    if self.selecting is None:
                        return self._match_many(given, number)
                    return self._match_selected(given, number, fields)
                if not rows.is_ready():
                    continue
                row = 0
                if self.writers != 0 or filters.writers != 0:
                    status = self._select_rows(filters, given, number, rows, &allocator, found, &fault, &row)
                else:
                    self._begin_reading()
                    filters._begin_reading()
                    try:
                        with nogil:
                            status = self._select_rows(filters, given, number, rows, &allocator, found, &fault, &row)
                    finally:
                        filters._end_reading()
                        self._end_reading()
                if status != NOT_READY:
                    break
                rows.build(&found[1])
            self._raise_of(status, given, number, &fault, row)
            return ends[2], self._copied(&found[2].results)
        finally:
            for row in range(3):
                results_free(&allocator, &found[row].results)

    cdef int _select_rows(
        self, FilterIndex filters, Topics given, uint32_t syntax, RowSelector rows, Allocator* allocator,
        RowsFound* found, Fault* fault, Py_ssize_t* row
    ) except? -3 nogil:
        cdef Py_ssize_t again = 0
        cdef int status
        found[0].results.ids.size = found[1].results.ids.size = found[2].results.ids.size = 0
        status = self._match_rows(given, syntax, allocator, &found[0].results, found[0].ends, fault, row)
        if status == MATCHED:
            status = filters._match_rows(given, syntax, allocator, &found[1].results, found[1].ends, fault, &again)
        if status == MATCHED:
            status = rows.select(given, syntax, &found[0], &found[1], allocator, &found[2])
        return status

    cdef int _raise_of(self, int status, Topics given, uint32_t number, const Fault* fault, Py_ssize_t row) except -1:
        cdef View view
        if status == INVALID:
            view = given.at(row)
            raise topic_error(&view, number, &self.limits, fault, row)
        if status == NO_MEMORY:
            raise MemoryError()
        return 0

    cdef int _match_rows(
        self, Topics given, uint32_t syntax, Allocator* allocator, Results* results, long long* ends, Fault* fault,
        Py_ssize_t* row
    ) noexcept nogil:
        """All topics, from the row on that is asked for; `row` is where it ended."""
        cdef Search[TOGETHER] searches
        cdef int most = TOGETHER if self.slots.live >= self.together_from else 1
        cdef int status = MATCHED
        cdef int made = 0
        while made < most and status == MATCHED:
            memset(&searches[made].found, 0, sizeof(Numbers))
            if topic_init(&searches[made].topic, allocator, self.limits.words) < 0:
                status = NO_MEMORY
            else:
                made += 1
        while row[0] < given.count and status == MATCHED:
            status = self._match_together(
                given, syntax, allocator, results, ends, fault, row, searches, min(given.count - row[0], most)
            )
        while made > 0:
            made -= 1
            topic_free(&searches[made].topic, allocator)
            numbers_free(allocator, &searches[made].found)
        return status

    cdef int _match_together(
        self, Topics given, uint32_t syntax, Allocator* allocator, Results* results, long long* ends, Fault* fault,
        Py_ssize_t* row, Search* searches, Py_ssize_t count
    ) noexcept nogil:
        """The next `count` rows, a step of each in turn. One that is invalid ends it; those before it are answered."""
        cdef Buckets* buckets = &self.tiers.buckets if self.tiers.buckets.live != 0 else NULL
        cdef Search* search
        cdef Py_ssize_t n = 0
        cdef Py_ssize_t i
        cdef int invalid = MATCHED
        cdef int status = 0
        while n < count and invalid == MATCHED:
            search = &searches[n]
            search.view = given.at(row[0] + n)
            search.found.size = 0
            if self._read_topic(&search.view, syntax, &search.topic, fault) < 0:
                invalid = INVALID
            else:
                n += 1
        if buckets != NULL:
            for i in range(n):
                search = &searches[i]
                status |= buckets_ask(buckets, &search.topic, False, &search.found, allocator, &search.batch)
            for i in range(n):
                status |= buckets_locate(&searches[i].batch)
            for i in range(n):
                status |= buckets_records(&searches[i].batch)
        for i in range(n):
            search = &searches[i]
            if self._others(&search.view, syntax, &search.topic, allocator, &search.found) < 0 or status < 0:
                return NO_MEMORY
            results.slots, search.found = search.found, results.slots
            if results_of_slots(allocator, results, &self.slots, results.ids.size) < 0:
                return NO_MEMORY
            row[0] += 1
            ends[row[0]] = <long long> results.ids.size
        return invalid

    cdef object _copied(self, const Results* results):
        import numpy  # here: a broker starts without it, and asks for one topic at a time
        ids = numpy.empty(results.ids.size, dtype=numpy.uint32)
        cdef unsigned int[::1] into = ids
        if results.ids.size != 0:
            memcpy(&into[0], results.ids.items, results.ids.size * sizeof(uint32_t))
        return ids

    # ---- looking in -----------------------------------------------------------------------------

    cdef list _matching(self, object topic, object syntax):
        """The slots that match."""
        cdef uint32_t number = syntax_of(syntax)
        cdef size_t i
        cdef size_t count
        cdef bytes kept
        self._collect(topic, number, False, &self.results)
        count = self.results.slots.size
        kept = PyBytes_FromStringAndSize(  # where another match does not reach: see _triples
            <const char*> self.results.slots.items, <Py_ssize_t> (count * sizeof(uint32_t))
        )
        return [(<const uint32_t*> PyBytes_AS_STRING(kept))[i] for i in range(count)]

    def matching(self, topic: str | bytes, *, syntax: str = "amqp") -> list:
        """[(filter, syntax, id), ...] of the filters that match. RuntimeError if the index changes meanwhile."""
        cdef uint64_t version = self.version
        cdef list found = []
        for slot in self._matching(topic, syntax):
            if self.version != version:
                raise RuntimeError("the FilterIndex changed while its matches were collected")
            found += self._triples(slot)
        return found

    def located(self, topic: str | bytes, *, syntax: str = "amqp", one_each: bool = False) -> list:
        """[(filter, syntax, id, tier, key), ...] of the filters that match: `matching`, and where each is kept.

        one_each: only one id of each filter.
        The tier is "exact", "pool" or "buckets". The key has the positions (positions.pxd) and words of the access
        key, and is empty but in the buckets. RuntimeError if the index changes meanwhile.
        """
        cdef uint64_t version = self.version
        cdef list found = []
        for slot in self._matching(topic, syntax):
            if self.version != version:
                raise RuntimeError("the FilterIndex changed while its matches were explained")
            triples = self._triples(slot, 1 if one_each else <size_t> -1)
            where = self._whereabouts(slot, version)
            found += [(*triple, *where) for triple in triples]
        return found
