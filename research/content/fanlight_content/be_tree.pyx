# cython: language_level=3, cdivision=True
"""BE-Tree: Sadoghi, Jacobsen: "BE-Tree: an index structure to efficiently match Boolean expressions over
high-dimensional discrete space", SIGMOD 2011.

What is more than a leaf is cut by its most popular attribute that was not used above, and inside that into halves of
the range, halves of halves and so on: a conjunction lies in the smallest that holds its condition. A message goes to
the parts of its attributes, and in each down to its value. Values of text lie at their hash. It is built at once, from
the top; the paper's tree is split as it grows, to the same end, and adapts to what is removed. Of several conditions on
one attribute the first counts, and of conditions that have no range (`<>`, LIKE, IN of several values) none.
"""

from libc.math cimport HUGE_VAL
from libc.stdlib cimport calloc, free

from fanlight_content.growth cimport grown
from fanlight_content.selections cimport BY_TEST, DOMAINS, OF_NUMBERS, OF_TEXTS, Asked, Criterion, Seen
from matchcore.allocator cimport deallocate, numbers_free
from matchcore.fields cimport FIELD_ABSENT, FIELD_FLOAT, FIELD_INTEGER, Field
from matchcore.hashing cimport hash_secret
from matchcore.screen cimport IdList
from matchcore.table cimport NONE
from matchcore.values cimport UNKNOWN, as_boolean, hash_text, is_text, number_kind


cdef class BETree(Contender):
    """Nodes, parts and buckets in an array each."""

    def __dealloc__(self) -> None:
        numbers_free(&self.allocator, &self.items)
        deallocate(&self.allocator, self.nodes, self.node_capacity * sizeof(TreeNode))
        deallocate(&self.allocator, self.parts, self.part_capacity * sizeof(TreePart))
        deallocate(&self.allocator, self.buckets, self.bucket_capacity * sizeof(TreeBucket))
        free(self.used)
        free(self.popular)

    cdef int add(self, uint32_t selection) except -1:
        return self.list_conjunctions(selection, &self.items)

    cdef int finish(self) except -1:
        cdef size_t i
        self.attributes = self.selections.attributes.room
        self.used = <uint8_t*> calloc(DOMAINS * self.attributes, 1)
        self.popular = <uint32_t*> calloc(DOMAINS * self.attributes, sizeof(uint32_t))
        if self.used == NULL or self.popular == NULL:
            raise MemoryError()
        self._node(0, <uint32_t> self.items.size)
        for i in range(self.items.size):
            self.items.items[i] = self.selections.conjunctions[self.items.items[i]].selection
        free(self.used)
        free(self.popular)
        self.used = NULL
        self.popular = NULL
        return 0

    cdef const Criterion* _of(self, uint32_t conjunction, uint32_t attribute, uint8_t domain) noexcept nogil:
        """Its criterion in this space; NULL: it has none, or several in one constraint."""
        cdef size_t count, i
        cdef const Criterion* criteria = self.criteria(conjunction, &count)
        for i in range(count):
            if criteria[i].attribute == attribute and criteria[i].domain == domain and criteria[i].kind != BY_TEST \
                    and (i == 0 or criteria[i - 1].constraint != criteria[i].constraint) \
                    and (i + 1 == count or criteria[i + 1].constraint != criteria[i].constraint):
                return &criteria[i]
        return NULL

    cdef uint32_t _most(self, uint32_t first, uint32_t end) noexcept nogil:
        """The space, DOMAINS x attribute + domain, in which most of them have a criterion, of those not used; NONE."""
        cdef uint32_t i, which, best = NONE
        cdef size_t count, j
        cdef const Criterion* criteria
        for which in range(DOMAINS * self.attributes):
            self.popular[which] = 0
        for i in range(first, end):
            criteria = self.criteria(self.items.items[i], &count)
            for j in range(count):
                which = DOMAINS * <uint32_t> criteria[j].attribute + criteria[j].domain
                if not self.used[which] and criteria[j].kind != BY_TEST \
                        and self._of(self.items.items[i], criteria[j].attribute, criteria[j].domain) == &criteria[j]:
                    self.popular[which] += 1
        for which in range(DOMAINS * self.attributes):
            if self.popular[which] != 0 and (best == NONE or self.popular[which] > self.popular[best]):
                best = which
        return best

    cdef uint32_t _node(self, uint32_t first, uint32_t end) except? 0xFFFFFFFF:
        """Of the items from `first` on."""
        cdef uint32_t which, mid, i, item, made
        cdef uint32_t node = <uint32_t> self.node_count
        self.nodes = <TreeNode*> grown(
            &self.allocator, self.nodes, &self.node_capacity, self.node_count + 1, sizeof(TreeNode)
        )
        self.nodes[node] = TreeNode(0, 0, NONE)
        self.node_count += 1
        while end - first > LEAF:
            which = self._most(first, end)
            if which == NONE:
                break
            mid = first
            for i in range(first, end):
                item = self.items.items[i]
                if self._of(item, which // DOMAINS, <uint8_t> (which % DOMAINS)) != NULL:
                    self.items.items[i] = self.items.items[mid]
                    self.items.items[mid] = item
                    mid += 1
            self.used[which] = 1
            made = self._part(first, mid, which)
            self.used[which] = 0
            self.parts[made].next = self.nodes[node].part
            self.nodes[node].part = made
            first = mid
        self.nodes[node].first = first
        self.nodes[node].count = end - first
        return node

    cdef uint32_t _part(self, uint32_t first, uint32_t end, uint32_t which) except? 0xFFFFFFFF:
        cdef double low = HUGE_VAL, high = -HUGE_VAL
        cdef const Criterion* criterion
        cdef uint32_t i, bucket
        cdef uint32_t part = <uint32_t> self.part_count
        for i in range(first, end):
            criterion = self._of(self.items.items[i], which // DOMAINS, <uint8_t> (which % DOMAINS))
            if criterion.low > -HUGE_VAL:
                low, high = min(low, criterion.low), max(high, criterion.low)
            if criterion.high < HUGE_VAL:
                low, high = min(low, criterion.high), max(high, criterion.high)
        self.parts = <TreePart*> grown(
            &self.allocator, self.parts, &self.part_capacity, self.part_count + 1, sizeof(TreePart)
        )
        self.parts[part] = TreePart(<uint16_t> (which // DOMAINS), <uint8_t> (which % DOMAINS), NONE, NONE, low, high)
        self.part_count += 1
        bucket = self._bucket(first, end, which, low, high, 0)
        self.parts[part].bucket = bucket
        return part

    cdef uint32_t _bucket(
        self, uint32_t first, uint32_t end, uint32_t which, double low, double high, int depth
    ) except? 0xFFFFFFFF:
        """What lies between low and high, or is cut off there."""
        cdef double middle = low / 2 + high / 2
        cdef uint32_t left = first, right = end, i = first, item, child
        cdef const Criterion* criterion
        cdef uint32_t bucket = <uint32_t> self.bucket_count
        self.buckets = <TreeBucket*> grown(
            &self.allocator, self.buckets, &self.bucket_capacity, self.bucket_count + 1, sizeof(TreeBucket)
        )
        self.buckets[bucket] = TreeBucket(middle, NONE, NONE, NONE)
        self.bucket_count += 1
        if end - first > LEAF and depth < DEEPEST and low < middle < high:
            while i < right:  # the left half to the front, the right half to the end, the rest between
                item = self.items.items[i]
                criterion = self._of(item, which // DOMAINS, <uint8_t> (which % DOMAINS))
                if criterion.high <= middle:
                    self.items.items[i] = self.items.items[left]
                    self.items.items[left] = item
                    left += 1
                    i += 1
                elif criterion.low > middle:
                    right -= 1
                    self.items.items[i] = self.items.items[right]
                    self.items.items[right] = item
                else:
                    i += 1
            if left > first:
                child = self._bucket(first, left, which, low, middle, depth + 1)
                self.buckets[bucket].left = child
            if right < end:
                child = self._bucket(right, end, which, middle, high, depth + 1)
                self.buckets[bucket].right = child
        if right > left:
            child = self._node(left, right)
            self.buckets[bucket].node = child
        return bucket

    cdef int find(self, Asked asked, IdList out) except -1 nogil:
        self.begin(out)
        self._find(0, self.seen(asked), asked, out)
        self.end(out)
        return 0

    cdef int _find(self, uint32_t at, const Seen* seen, Asked asked, IdList out) except -1 nogil:
        cdef const TreeNode* node = &self.nodes[at]
        cdef const TreePart* part
        cdef uint32_t i, next = node.part
        cdef Field* field
        cdef double value
        cdef int kind
        for i in range(node.first, node.first + node.count):
            self.check(self.items.items[i], asked, out)
        while next != NONE:
            part = &self.parts[next]
            next = part.next
            field = &seen.at[part.attribute]
            if field.kind == FIELD_ABSENT:
                continue
            if part.domain == OF_NUMBERS:
                kind = number_kind(field)
                if kind == FIELD_INTEGER or kind == FIELD_FLOAT:
                    value = <double> field.integer if kind == FIELD_INTEGER else field.real
                    self._walk(part, value, seen, asked, out)
            elif part.domain == OF_TEXTS:
                if is_text(field):
                    value = <double> hash_text(hash_secret(), part.attribute, field.text, field.size)
                    self._walk(part, value, seen, asked, out)
            elif as_boolean(field) != UNKNOWN:
                self._walk(part, as_boolean(field), seen, asked, out)
        return 0

    cdef int _walk(
        self, const TreePart* part, double value, const Seen* seen, Asked asked, IdList out
    ) except -1 nogil:
        cdef uint32_t at = part.bucket
        cdef const TreeBucket* bucket
        while at != NONE:  # what is beyond all bounds goes to the outermost, where those without a bound lie
            bucket = &self.buckets[at]
            if bucket.node != NONE:
                self._find(bucket.node, seen, asked, out)
            at = bucket.left if value <= bucket.middle else bucket.right
        return 0
