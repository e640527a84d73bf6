"""The usual trie, "trie-S": each node is a block of its own with a string-keyed map of its children.

What mosquitto (`struct mosquitto__subhier`, a uthash table in each), NATS (`level`, a Go map) and most
text-book matchers do, and the baseline that comparisons with "a trie" mean. Kinder than they are in two
things: a word is hashed once for a topic and not at every node, and the chained tables begin with four
buckets and double. Subscriber data, locks and statistics are left out.

With several `#` in one filter a node can be reached in several ways, and gives its ids as often; as in the
systems it stands for, who asks drops the doubles, and a filter of many `#` can take exponential time.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

from fanlight_matchers.contender cimport DONE, NO_MEMORY, UNKNOWN, Contender, Found, emit
from fanlight_matchers.memory cimport enlarge, give_back, take, take_zeros
from fanlight_matchers.text cimport LITERAL, MANY, MOST_WORDS, ONE, Word, same_text


cdef inline StringBranch* child_of(const StringBranch* branch, const Word* word) noexcept nogil:
    cdef StringBranch* child
    if branch.buckets == NULL:
        return NULL
    child = branch.buckets[word.hash & branch.bucket_mask]
    while child != NULL and (child.hash != word.hash or not same_text(word, child.word, child.size)):
        child = child.next
    return child


cdef inline StringBranch* below(const StringBranch* branch, const Word* word) noexcept nogil:
    """Where a filter's word leads to."""
    if word.kind == LITERAL:
        return child_of(branch, word)
    return branch.one if word.kind == ONE else branch.many


cdef class StringTrie(Contender):
    """trie-S."""

    def __cinit__(self, str syntax="amqp"):
        self.root = self._new(NULL, NULL)
        if self.root == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.root != NULL:
            self._free_all(self.root)

    cdef StringBranch* _new(self, StringBranch* above, const Word* word) noexcept nogil:
        cdef uint32_t size = word.size if word != NULL else 0
        cdef StringBranch* branch = <StringBranch*> take(&self.taken, sizeof(StringBranch) + size)
        if branch == NULL:
            return NULL
        memset(branch, 0, sizeof(StringBranch))
        branch.above = above
        branch.size = size
        if word != NULL:
            branch.hash = word.hash
            branch.kind = <unsigned char> word.kind
            memcpy(branch.word, word.text, size)
        return branch

    cdef void _free(self, StringBranch* branch) noexcept nogil:
        if branch.buckets != NULL:
            give_back(&self.taken, branch.buckets, (<size_t> branch.bucket_mask + 1) * sizeof(StringBranch*))
        give_back(&self.taken, branch.ids, branch.id_room * sizeof(uint32_t))
        give_back(&self.taken, branch, sizeof(StringBranch) + branch.size)

    cdef void _free_all(self, StringBranch* branch) noexcept nogil:
        cdef uint32_t i
        cdef StringBranch* child
        cdef StringBranch* next
        if branch.buckets != NULL:
            for i in range(branch.bucket_mask + 1):
                child = branch.buckets[i]
                while child != NULL:
                    next = child.next
                    self._free_all(child)
                    child = next
        if branch.one != NULL:
            self._free_all(branch.one)
        if branch.many != NULL:
            self._free_all(branch.many)
        self._free(branch)

    cdef bint _put(self, StringBranch* above, StringBranch* child) noexcept nogil:
        cdef StringBranch** old = above.buckets
        cdef StringBranch* moved
        cdef size_t size = <size_t> above.bucket_mask + 1 if old != NULL else 0
        cdef size_t i
        if above.children >= size:
            above.buckets = <StringBranch**> take_zeros(&self.taken, (2 * size if size else 4) * sizeof(StringBranch*))
            if above.buckets == NULL:
                above.buckets = old
                return False
            above.bucket_mask = <uint32_t> (2 * size if size else 4) - 1
            for i in range(size):
                while old[i] != NULL:
                    moved = old[i]
                    old[i] = moved.next
                    moved.next = above.buckets[moved.hash & above.bucket_mask]
                    above.buckets[moved.hash & above.bucket_mask] = moved
            give_back(&self.taken, old, size * sizeof(StringBranch*))
        child.next = above.buckets[child.hash & above.bucket_mask]
        above.buckets[child.hash & above.bucket_mask] = child
        above.children += 1
        return True

    cdef void _take_out(self, StringBranch* child) noexcept nogil:
        cdef StringBranch* above = child.above
        cdef StringBranch** at
        if child.kind == ONE:
            above.one = NULL
        elif child.kind == MANY:
            above.many = NULL
        else:
            at = &above.buckets[child.hash & above.bucket_mask]
            while at[0] != child:
                at = &at[0].next
            at[0] = child.next
            above.children -= 1
            if above.children == 0:
                give_back(&self.taken, above.buckets, (<size_t> above.bucket_mask + 1) * sizeof(StringBranch*))
                above.buckets = NULL
        self._free(child)

    cdef int _hold(self, StringBranch* branch, uint32_t id) noexcept nogil:
        cdef uint32_t i, room
        cdef void* larger
        for i in range(branch.id_count):
            if branch.ids[i] == id:
                return UNKNOWN
        if branch.id_count == branch.id_room:
            room = 2 * branch.id_room if branch.id_room else 2
            larger = enlarge(
                &self.taken, branch.ids, branch.id_room * sizeof(uint32_t), room * sizeof(uint32_t)
            )
            if larger == NULL:
                return NO_MEMORY
            branch.ids = <uint32_t*> larger
            branch.id_room = room
        branch.ids[branch.id_count] = id
        branch.id_count += 1
        return DONE

    cdef int add(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef StringBranch* branch = self.root
        cdef StringBranch* child
        cdef int i
        for i in range(count):
            child = below(branch, &words[i])
            if child == NULL:
                child = self._new(branch, &words[i])
                if child == NULL:
                    return NO_MEMORY
                if words[i].kind == ONE:
                    branch.one = child
                elif words[i].kind == MANY:
                    branch.many = child
                elif not self._put(branch, child):
                    self._free(child)
                    return NO_MEMORY
            branch = child
        return self._hold(branch, id)

    cdef int drop(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef StringBranch* branch = self.root
        cdef StringBranch* above
        cdef uint32_t at
        cdef int i
        for i in range(count):
            branch = below(branch, &words[i])
            if branch == NULL:
                return UNKNOWN
        for at in range(branch.id_count):
            if branch.ids[at] == id:
                break
        else:
            return UNKNOWN
        branch.id_count -= 1
        branch.ids[at] = branch.ids[branch.id_count]
        # What leads nowhere any more is forgotten.
        while (
            branch.above != NULL and branch.id_count == 0 and branch.children == 0
            and branch.one == NULL and branch.many == NULL
        ):
            above = branch.above
            self._take_out(branch)
            branch = above
        return DONE

    cdef void _visit(
        self, const StringBranch* branch, const Word* words, int level, int count, bint dollar, Found* found
    ) noexcept nogil:
        cdef const StringBranch* child
        cdef uint32_t i
        cdef int rest
        if branch.many != NULL and not dollar:
            child = branch.many
            for i in range(child.id_count):
                emit(found, child.ids[i])
            if child.children != 0 or child.one != NULL or child.many != NULL:
                for rest in range(level, count + 1):
                    self._visit(child, words, rest, count, False, found)
        if level == count:
            if branch.kind != MANY:  # those gave their ids when they were reached
                for i in range(branch.id_count):
                    emit(found, branch.ids[i])
            return
        child = child_of(branch, &words[level])
        if child != NULL:
            self._visit(child, words, level + 1, count, False, found)
        if branch.one != NULL and not dollar:
            self._visit(branch.one, words, level + 1, count, False, found)

    cdef void find(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef Word words[MOST_WORDS]
        cdef int count = self.cut_topic(topic, size, words)
        if count >= 0:
            self._visit(self.root, words, 0, count, self.mqtt and size > 0 and topic[0] == b"$", found)
