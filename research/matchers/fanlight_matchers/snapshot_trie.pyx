"""The concurrent subscription trie of matchbox (Treat, 2016): readers never wait, writers copy and swap.

As a Ctrie (Prokopec): a node is an I-node, one pointer, to an immutable C-node, the map of its branches. A
change copies the C-node, and the branch in question, and swaps the pointer if it is still the same, else begins
again; that swap is where it takes effect. An emptied C-node becomes a tomb, which nobody writes to again, and
whoever meets it takes it out of the C-node above.

`#` is added to it, as in the other tries. A look-up reads the live trie, so each node is of one moment but
the whole may not be. That is the trie whose figures Treat published (cstrie.go of fast-topic-matching: one compare
and swap a change, look-ups on the live trie). The library matchbox has besides it the Ctrie's generations, by which
the whole can be frozen in one step, to list all subscriptions; they are left out. A look-up does not need them, a
change would need a second compare and swap (GCAS) and a copy of every node on its way after each snapshot, and
without a garbage collector every node, being shared by snapshots, a count of who holds it: all of it would make this
contender slower in every figure there is here. Readers on a snapshot beside a writer are matchcore's FrozenIndex.

Go's garbage collector is replaced by epochs (epochs.pxd), whose cost is in every figure: an enter and a leave, two
atomic additions each, an operation.

For several threads.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fanlight_matchers.contender cimport DONE, NO_MEMORY, UNKNOWN, Found, emit
from fanlight_matchers.epochs cimport (
    Epochs, epochs_close, epochs_enter, epochs_give_back, epochs_leave, epochs_retire, epochs_take, epochs_turn,
)
from fanlight_matchers.text cimport LITERAL, MANY, MOST_WORDS, ONE, Word, same_text

cdef extern from *:
    """
    #define matchers_load_main(inode) __atomic_load_n(&(inode)->main, __ATOMIC_ACQUIRE)

    #define matchers_swap_main(inode, old, new) matchers_swap((void **) &(inode)->main, (void *) (old), (new))

    static inline int matchers_swap(void **at, void *old, void *new_) {
        return __atomic_compare_exchange_n(at, &old, new_, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    """
    CNode* load_main "matchers_load_main" (INode* inode) noexcept nogil
    bint swap_main "matchers_swap_main" (INode* inode, CNode* old, CNode* new) noexcept nogil

cdef enum:
    AGAIN = 7           # beside an Outcome: begin again at the root
    RETIRED_MANY = 512  # blocks that wait before the epoch is turned



# What an emptied C-node is replaced by; nobody writes to it again.
cdef CNode TOMB


cdef inline uint32_t* ids_of(const Branch* branch) noexcept nogil:
    return <uint32_t*> (branch + 1)


cdef inline unsigned char* word_of(const Branch* branch) noexcept nogil:
    return <unsigned char*> (ids_of(branch) + branch.count)


cdef inline size_t branch_size(uint32_t count, uint32_t size) noexcept nogil:
    return sizeof(Branch) + count * sizeof(uint32_t) + size


cdef inline size_t cnode_size(uint32_t mask) noexcept nogil:
    return sizeof(CNode) + mask * sizeof(Branch*)


cdef inline Branch* branch_of(const CNode* main, const Word* word, uint32_t kind) noexcept nogil:
    cdef Branch* branch
    cdef uint32_t i
    if kind != LITERAL:
        return main.one if kind == ONE else main.many
    i = <uint32_t> word.hash & main.mask
    while main.cells[i] != NULL:
        branch = main.cells[i]
        if branch.hash == word.hash and same_text(word, word_of(branch), branch.size):
            return branch
        i = (i + 1) & main.mask
    return NULL


cdef inline void put_branch(CNode* main, Branch* branch) noexcept nogil:
    cdef uint32_t i = <uint32_t> branch.hash & main.mask
    if branch.kind == ONE:
        main.one = branch
    elif branch.kind == MANY:
        main.many = branch
    else:
        while main.cells[i] != NULL:
            i = (i + 1) & main.mask
        main.cells[i] = branch


cdef class SnapshotTrie(Contender):
    """Copy on write, compare and swap."""

    def __cinit__(self, str syntax="amqp"):
        memset(&self.epochs, 0, sizeof(Epochs))
        self.root = <INode*> epochs_take(&self.epochs, sizeof(INode))
        if self.root == NULL:
            raise MemoryError
        self.root.main = self._cnode(NULL, NULL, NULL)
        if self.root.main == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef int i
        if self.root != NULL and self.root.main != NULL:
            self._free(self.root)
        for i in range(3):
            epochs_turn(&self.epochs, 0)
        epochs_close(&self.epochs)

    def share(self):
        """Several threads may call `mix`, and no one waits."""

    cdef void _free(self, INode* inode) noexcept nogil:
        cdef CNode* main = inode.main
        cdef uint32_t i
        if main != &TOMB:
            for i in range(main.mask + 1):
                self._free_branch(main.cells[i])
            self._free_branch(main.one)
            self._free_branch(main.many)
            epochs_give_back(&self.epochs, main, cnode_size(main.mask))
        epochs_give_back(&self.epochs, inode, sizeof(INode))

    cdef void _free_branch(self, Branch* branch) noexcept nogil:
        if branch != NULL:
            if branch.below != NULL:
                self._free(branch.below)
            epochs_give_back(&self.epochs, branch, branch_size(branch.count, branch.size))

    cdef CNode* _cnode(self, const CNode* old, const Branch* without, Branch* with_) noexcept nogil:
        """A copy (of nothing, if NULL) without one branch and with another; either may be NULL."""
        cdef uint32_t count = (old.count if old != NULL else 0) - (without != NULL) + (with_ != NULL)
        cdef uint32_t mask = old.mask if old != NULL else 1, i
        cdef CNode* main
        while count > mask - mask // 4:  # cells are mask + 1, so one stays empty at least
            mask = 2 * mask + 1
        if mask > 7 and count < mask // 8:
            mask = mask // 2
        main = <CNode*> epochs_take(&self.epochs, cnode_size(mask))
        if main == NULL:
            return NULL
        if old != NULL and mask == old.mask and without != NULL and with_ != NULL:  # the same word
            memcpy(main, old, cnode_size(mask))
            if main.one == without:
                main.one = with_
            elif main.many == without:
                main.many = with_
            else:
                i = <uint32_t> without.hash & mask
                while main.cells[i] != without:
                    i = (i + 1) & mask
                main.cells[i] = with_
            return main
        memset(main, 0, cnode_size(mask))
        main.count = count
        main.mask = mask
        if old != NULL:
            for i in range(old.mask + 1):
                if old.cells[i] != NULL and old.cells[i] != without:
                    put_branch(main, old.cells[i])
            if old.one != without:
                main.one = old.one
            if old.many != without:
                main.many = old.many
        if with_ != NULL:
            put_branch(main, with_)
        return main

    cdef Branch* _branch(
        self, const Branch* old, const Word* word, INode* below, const uint32_t* id, bint add
    ) noexcept nogil:
        """A copy (or a new one for a word, if `old` is NULL) with another I-node below and an id more or less."""
        cdef uint32_t count = old.count if old != NULL else 0, size = old.size if old != NULL else word.size
        cdef uint32_t i, kept = 0
        cdef Branch* branch
        if id != NULL:
            count = count + 1 if add else count - 1
        branch = <Branch*> epochs_take(&self.epochs, branch_size(count, size))
        if branch == NULL:
            return NULL
        if old != NULL:
            branch[0] = old[0]
        else:
            branch[0] = Branch(NULL, word.hash, word.kind, size, 0)
        branch.below = below
        branch.count = count
        if old != NULL:
            for i in range(old.count):
                if id == NULL or add or ids_of(old)[i] != id[0]:
                    ids_of(branch)[kept] = ids_of(old)[i]
                    kept += 1
        if id != NULL and add:
            ids_of(branch)[kept] = id[0]
        memcpy(word_of(branch), word_of(old) if old != NULL else word.text, size)
        return branch

    cdef INode* _path(self, const Word* words, int count, uint32_t id) noexcept nogil:
        """I-nodes for the rest of a filter; NULL: no memory."""
        cdef INode* inode = <INode*> epochs_take(&self.epochs, sizeof(INode))
        cdef INode* below = NULL
        cdef Branch* branch
        if inode == NULL:
            return NULL
        if count > 1:
            below = self._path(words + 1, count - 1, id)
            if below == NULL:
                return NULL
        branch = self._branch(NULL, words, below, &id if count == 1 else NULL, True)
        inode.main = self._cnode(NULL, NULL, branch) if branch != NULL else NULL
        return inode if inode.main != NULL else NULL

    cdef int _swap(self, INode* inode, CNode* old, Branch* without, Branch* with_) noexcept nogil:
        """DONE: it took effect, and what it replaced is retired."""
        cdef CNode* main
        main = self._cnode(old, without, with_)
        if main == NULL:
            return NO_MEMORY
        if main.count == 0 and inode != self.root:
            epochs_give_back(&self.epochs, main, cnode_size(main.mask))
            main = &TOMB
        if not swap_main(inode, old, main):
            if main != &TOMB:
                epochs_give_back(&self.epochs, main, cnode_size(main.mask))
            if with_ != NULL:
                epochs_give_back(&self.epochs, with_, branch_size(with_.count, with_.size))
            return AGAIN
        epochs_retire(&self.epochs, old, cnode_size(old.mask))
        if without != NULL:
            epochs_retire(&self.epochs, without, branch_size(without.count, without.size))
        return DONE

    cdef int _clean(self, INode** path, const Word* words, int level) noexcept nogil:
        """The tomb at path[level] is taken out of the C-node above, and that, if nothing is left, likewise."""
        cdef CNode* main
        cdef Branch* branch
        cdef Branch* kept
        cdef int outcome
        while level > 0 and load_main(path[level]) == &TOMB:
            main = load_main(path[level - 1])
            if main == &TOMB:
                level -= 1
                continue
            branch = branch_of(main, &words[level - 1], words[level - 1].kind)
            if branch == NULL or branch.below != path[level]:
                return DONE  # somebody was quicker
            kept = NULL
            if branch.count:
                kept = self._branch(branch, NULL, NULL, NULL, False)
                if kept == NULL:
                    return NO_MEMORY
            outcome = self._swap(path[level - 1], main, branch, kept)
            if outcome == NO_MEMORY:
                return outcome
            if outcome == DONE:
                epochs_retire(&self.epochs, path[level], sizeof(INode))
                level -= 1
        return DONE

    cdef int _change(self, const Word* words, int count, uint32_t id, bint add) noexcept nogil:
        """One attempt, or AGAIN."""
        cdef INode* path[MOST_WORDS + 1]
        cdef INode* rest = NULL
        cdef CNode* main
        cdef Branch* branch
        cdef Branch* changed
        cdef uint32_t i
        cdef int level = 0, outcome
        path[0] = self.root
        while True:
            main = load_main(path[level])
            if main == &TOMB:
                return NO_MEMORY if self._clean(path, words, level) == NO_MEMORY else AGAIN
            branch = branch_of(main, &words[level], words[level].kind)
            if branch == NULL or branch.below == NULL or level == count - 1:
                break
            level += 1
            path[level] = branch.below
        if level < count - 1:  # the trie ends before the filter does
            if not add:
                return UNKNOWN
            rest = self._path(words + level + 1, count - level - 1, id)
            if rest == NULL:
                return NO_MEMORY
            changed = self._branch(branch, &words[level], rest, NULL, False)
        else:
            i = 0
            while branch != NULL and i < branch.count and ids_of(branch)[i] != id:
                i += 1
            if (branch != NULL and i < branch.count) == add:
                return UNKNOWN
            changed = NULL
            if not add and branch.count == 1 and branch.below == NULL:
                pass  # nothing of the branch is left
            else:
                changed = self._branch(branch, &words[level], branch.below if branch != NULL else NULL, &id, add)
                if changed == NULL:
                    return NO_MEMORY
        if rest != NULL and changed == NULL:
            return NO_MEMORY
        outcome = self._swap(path[level], main, branch, changed)
        if outcome == AGAIN and rest != NULL:
            self._free(rest)
        if outcome == DONE and not add and self._clean(path, words, level) == NO_MEMORY:
            return NO_MEMORY
        return outcome

    cdef int _changed(self, const Word* words, int count, uint32_t id, bint add) noexcept nogil:
        cdef uint32_t epoch = epochs_enter(&self.epochs)
        cdef int outcome = AGAIN
        cdef Word empty
        if count == 0:  # AMQP's filter of no words: a word that no topic has, at the root
            memset(&empty, 0, sizeof(Word))
            empty.text = <const unsigned char*> b""
            empty.hash = 1
            words = &empty
            count = 1
        while outcome == AGAIN:
            outcome = self._change(words, count, id, add)
        epochs_leave(&self.epochs, epoch)
        epochs_turn(&self.epochs, RETIRED_MANY)
        return outcome

    cdef int add(self, const Word* words, int count, uint32_t id) noexcept nogil:
        return self._changed(words, count, id, True)

    cdef int drop(self, const Word* words, int count, uint32_t id) noexcept nogil:
        return self._changed(words, count, id, False)

    cdef void _emit(self, const Branch* branch, Found* found) noexcept nogil:
        cdef uint32_t i
        for i in range(branch.count):
            emit(found, ids_of(branch)[i])

    cdef void _visit(
        self, INode* inode, const Word* words, int level, int count, bint dollar, Found* found
    ) noexcept nogil:
        """The branches of an I-node, for the words from `level` on."""
        cdef CNode* main = load_main(inode)
        cdef Branch* branch
        cdef int rest
        if main == &TOMB:  # empty, and about to go
            return
        if main.many != NULL and not dollar:
            self._emit(main.many, found)
            if main.many.below != NULL:
                for rest in range(level, count + 1):
                    self._visit(main.many.below, words, rest, count, False, found)
        if level == count:
            return
        branch = branch_of(main, &words[level], LITERAL)
        if branch != NULL:
            self._arrive(branch, words, level + 1, count, found)
        if main.one != NULL and not dollar:
            self._arrive(main.one, words, level + 1, count, found)

    cdef void _arrive(self, const Branch* branch, const Word* words, int level, int count, Found* found) noexcept nogil:
        if level == count:
            self._emit(branch, found)
        if branch.below != NULL:  # at the end too: a `#` may be next
            self._visit(branch.below, words, level, count, False, found)

    cdef void find(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef Word words[MOST_WORDS]
        cdef Word empty
        cdef Branch* branch
        cdef int count = self.cut_topic(topic, size, words)
        cdef uint32_t epoch
        if count < 0:
            return
        epoch = epochs_enter(&self.epochs)
        self._visit(self.root, words, 0, count, self.mqtt and size > 0 and topic[0] == b"$", found)
        if count == 0:
            memset(&empty, 0, sizeof(Word))
            empty.text = <const unsigned char*> b""
            empty.hash = 1
            branch = branch_of(load_main(self.root), &empty, LITERAL)
            if branch != NULL:
                self._emit(branch, found)
        epochs_leave(&self.epochs, epoch)

    @property
    def nbytes(self):
        """What it takes, and what is retired and not yet freed."""
        return self.epochs.taken
