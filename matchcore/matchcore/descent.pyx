# cython: language_level=3
"""Matches a filter against a trie of names, by the cheaper way in each stage: see descent.pxd.

    a . * . # . b . * . # . c . *      tokens
    `---'       `---'       `---'
    prefix     segments     suffix     literals of a prefix have a position from the left: one row of postings;
                                       the others stand anywhere: all rows of the word

A prefix or a suffix goes on word by word from the nodes that were checked. From a segment's literal it cannot:
the segment may stand twice in a name. So there, as below the first MANY, whole names are checked, each once
(verify.pyx).
"""

from matchcore.allocator cimport numbers_free, numbers_push, numbers_reserve, prefetch
from matchcore.bag cimport Bag, bag_items
from matchcore.positions cimport Parts, TOKEN_MANY, TOKEN_ONE, TOKEN_WILD, parts_of
from matchcore.postings cimport postings_row, postings_total, row_place
from matchcore.table cimport NONE
from matchcore.trie cimport DOLLAR, Node, ROOT, node_depth, node_holds, trie_child
from matchcore.verify cimport tokens_take

cdef enum:
    TOKENS_AT_MOST = 1024  # syntax.pyx allows no more words
    AHEAD = 8              # nodes whose memory is asked for ahead of time
    MET_TOO_MANY = 1


cdef struct Question:
    const uint32_t* tokens
    uint32_t count
    uint32_t prefix                # tokens before the first MANY
    uint32_t suffix                # where the suffix begins: behind the last MANY, or at 0
    bint no_dollar
    size_t budget                  # nodes that may still be met in this stage
    size_t[TOKENS_AT_MOST] nodes   # of each literal: in its postings


cdef void descent_free(Trie* trie, Descent* descent) noexcept nogil:
    numbers_free(trie.allocator, &descent.frontier)
    numbers_free(trie.allocator, &descent.ahead)
    numbers_free(trie.allocator, &descent.found)


# ---- upwards: what a node's words say ------------------------------------------------------------

cdef bint _reaches(const Trie* trie, const Question* question, uint32_t count, uint32_t n) noexcept nogil:
    """Whether the words from the root to node `n` match the first `count` tokens."""
    cdef uint32_t[TOKENS_AT_MOST] words
    cdef uint32_t depth = node_depth(trie, n)
    cdef uint32_t position = depth
    cdef uint32_t token
    cdef const Node* node
    cdef Parts parts
    if count <= question.prefix and depth != count:
        return False
    while position > 0:
        node = &trie.nodes[n]
        position -= 1
        if position < question.prefix and position < count:
            token = question.tokens[position]
            if token != node.word and token != TOKEN_ONE:
                return False
        words[position] = node.word
        if position == 0 and question.no_dollar and node.children.mark & DOLLAR:
            return False
        n = node.parent
    if count <= question.prefix:
        return True
    parts = parts_of(question.tokens, count)
    return tokens_take(question.tokens, count, parts.prefix, parts.suffix, True, words, depth, NULL)


cdef bint _is_below_another(const Trie* trie, uint32_t n) noexcept nogil:
    """Whether the word of `n` stands nearer to the root too."""
    cdef uint32_t word = trie.nodes[n].word
    n = trie.nodes[n].parent
    while n != ROOT:
        if trie.nodes[n].word == word:
            return True
        n = trie.nodes[n].parent
    return False


# ---- downwards -------------------------------------------------------------------------------------

cdef int _push_children(Trie* trie, Question* question, uint32_t n, Numbers* out) noexcept nogil:
    """All children of `n` to `out`: 0, -1 no memory, MET_TOO_MANY."""
    cdef const Bag* children = &trie.nodes[n].children
    cdef const uint32_t* items
    cdef bint no_dollar = question.no_dollar and n == ROOT
    cdef uint32_t i, child
    if children.size == 0:
        return 0
    if children.size > question.budget:
        return MET_TOO_MANY
    question.budget -= children.size
    if out.capacity - out.size < children.size:
        if numbers_reserve(trie.allocator, out, out.size + children.size) < 0:
            return -1
    items = bag_items(&trie.arena, children)
    for i in range(children.size):
        child = items[i]
        if not (no_dollar and trie.nodes[child].children.mark & DOLLAR):
            prefetch(&trie.nodes[child])
            out.items[out.size] = child
            out.size += 1
    return 0


cdef inline void _prefetch_children(const Trie* trie, const Numbers* nodes, size_t i) noexcept nogil:
    cdef const Bag* children
    if i + AHEAD < nodes.size:
        children = &trie.nodes[nodes.items[i + AHEAD]].children
        if children.room != 0:
            prefetch(&trie.arena.units[children.at])


cdef int _go_down(
    Trie* trie, Descent* descent, Question* question, uint32_t first, uint32_t last
) noexcept nogil:
    """The frontier, before token `first`, goes on to before token `last`; no MANY is between."""
    cdef uint32_t token, t, child
    cdef size_t i
    cdef int status
    cdef Numbers swap
    for t in range(first, last):
        token = question.tokens[t]
        descent.ahead.size = 0
        if token != TOKEN_ONE and descent.frontier.size > question.budget:
            return MET_TOO_MANY
        for i in range(descent.frontier.size):
            if token == TOKEN_ONE:
                _prefetch_children(trie, &descent.frontier, i)
                status = _push_children(trie, question, descent.frontier.items[i], &descent.ahead)
                if status != 0:
                    return status
                continue
            question.budget -= 1
            child = trie_child(trie, descent.frontier.items[i], token)
            if child != NONE and numbers_push(trie.allocator, &descent.ahead, child) < 0:
                return -1
        swap = descent.frontier
        descent.frontier = descent.ahead
        descent.ahead = swap
        if descent.frontier.size == 0:
            return 0
    return 0


cdef int _spread(Trie* trie, Question* question, Numbers* nodes) noexcept nogil:
    """All nodes below those in `nodes` are added to them."""
    cdef size_t i = 0
    cdef int status
    while i < nodes.size:
        _prefetch_children(trie, nodes, i)
        status = _push_children(trie, question, nodes.items[i], nodes)
        if status != 0:
            return status
        i += 1
    return 0


cdef int _keep_names(
    Trie* trie, const Question* question, Numbers* nodes, Numbers* found, bint check
) noexcept nogil:
    """Those of the nodes where a name ends are found, if they are checked only those that match."""
    cdef size_t i
    cdef uint32_t n
    for i in range(nodes.size):
        n = nodes.items[i]
        if i + AHEAD < nodes.size:
            prefetch(&trie.nodes[nodes.items[i + AHEAD]])
        if node_holds(trie, n) and (not check or _reaches(trie, question, question.count, n)):
            if numbers_push(trie.allocator, found, n) < 0:
                return -1
    return 0


# ---- sideways: the postings ------------------------------------------------------------------------

cdef int _sift(
    Trie* trie, const Question* question, uint32_t row, uint32_t token, bint topmost, Numbers* out
) noexcept nogil:
    """Of a row, the nodes that the tokens up to `token` reach; `topmost`: those below no other of the word."""
    cdef const Bag* nodes = &trie.postings.rows[row].nodes
    cdef const uint32_t* items = bag_items(&trie.arena, nodes)
    cdef uint32_t i
    cdef bint taken
    for i in range(nodes.size):
        if i + AHEAD < nodes.size:
            prefetch(&trie.nodes[items[i + AHEAD]])
        if topmost:
            taken = not _is_below_another(trie, items[i])
        else:
            taken = _reaches(trie, question, token + 1, items[i])
        if taken and numbers_push(trie.allocator, out, items[i]) < 0:
            return -1
    return 0


cdef int _jump(
    Trie* trie, const Question* question, uint32_t token, bint topmost, Numbers* out
) noexcept nogil:
    """The frontier becomes what the postings of literal `token` say."""
    cdef uint32_t word = question.tokens[token]
    cdef uint32_t row
    out.size = 0
    if token < question.prefix:
        return _sift(trie, question, postings_row(&trie.postings, word, row_place(token)), token, topmost, out)
    row = trie.postings.first[word]
    while row != NONE:
        if _sift(trie, question, row, token, topmost, out) < 0:
            return -1
        row = trie.postings.rows[row].next
    return 0


cdef inline uint32_t _rarest(const Question* question, uint32_t first) noexcept nogil:
    """The literal with the fewest nodes from token `first` on; of equals the last. `count`: there is none."""
    cdef uint32_t best = question.count
    cdef uint32_t i
    for i in range(first, question.count):
        if question.tokens[i] < TOKEN_WILD and (
            best == question.count or question.nodes[i] <= question.nodes[best]
        ):
            best = i
    return best


# ---- the stages ------------------------------------------------------------------------------------

cdef bint _prepare(const Trie* trie, Question* question, const uint32_t* tokens, uint32_t count) noexcept nogil:
    """False: a literal stands nowhere, or not at its position."""
    cdef uint32_t i, row
    question.tokens = tokens
    question.count = question.prefix = count
    question.suffix = 0
    for i in range(count):
        if tokens[i] == TOKEN_MANY:
            if question.prefix == count:
                question.prefix = i
            question.suffix = i + 1
    for i in range(count):
        if tokens[i] >= TOKEN_WILD:
            continue
        if i < question.prefix:
            row = postings_row(&trie.postings, tokens[i], row_place(i))
            question.nodes[i] = 0 if row == NONE else trie.postings.rows[row].nodes.size
        else:
            question.nodes[i] = postings_total(&trie.postings, tokens[i])
        if question.nodes[i] == 0:
            return False
    return True


cdef int _whole_names(
    Trie* trie, Descent* descent, Question* question, uint32_t rarest
) noexcept nogil:
    """All names below the nodes of a segment's literal, each checked."""
    if _jump(trie, question, rarest, True, &descent.frontier) < 0:
        return -1
    question.budget = <size_t> -1
    if _spread(trie, question, &descent.frontier) < 0:
        return -1
    return _keep_names(trie, question, &descent.frontier, &descent.found, True)


cdef int trie_ask(
    Trie* trie, Descent* descent, const uint32_t* tokens, uint32_t count, bint no_dollar
) noexcept nogil:
    cdef Question question
    cdef uint32_t at = 0      # the frontier is before this token
    cdef uint32_t end, rarest, goal
    cdef int status
    cdef bint below_many
    descent.found.size = descent.frontier.size = 0
    if trie.count == 0:
        return 0
    question.no_dollar = no_dollar
    if not _prepare(trie, &question, tokens, count):
        return 0
    end = question.prefix
    if numbers_push(trie.allocator, &descent.frontier, ROOT) < 0:
        return -1
    while descent.frontier.size != 0:
        rarest = _rarest(&question, at)
        if rarest == count:
            question.budget = <size_t> -1
        else:
            question.budget = 0 if descent.slack < 0 else question.nodes[rarest] + <size_t> descent.slack
        goal = rarest + 1 if rarest < end else end
        status = _go_down(trie, descent, &question, at, goal)
        if status == 0:
            at = goal
            if rarest < end:
                continue
            if end == count:
                return _keep_names(trie, &question, &descent.frontier, &descent.found, False)
            status = _spread(trie, &question, &descent.frontier)
            if status == 0:
                below_many = rarest < count  # more than a MANY at the end is to be seen to
                return _keep_names(trie, &question, &descent.frontier, &descent.found, below_many)
        if status < 0:
            return -1
        if question.prefix < rarest < question.suffix:
            return _whole_names(trie, descent, &question, rarest)
        if _jump(trie, &question, rarest, False, &descent.frontier) < 0:
            return -1
        at = rarest + 1
        if rarest >= question.prefix:
            end = count
    return 0
