# Asking a trie of names with a filter: downwards from the root, or from where the filter's rarest word stands.
#
#     site/17/floor/#        root -> site -> 17 -> floor, and all below: only what matches is met
#     +/+/+/+/dev/4711/#     the nodes of "4711" as sixth word: upwards each is checked, then all below them
#     #.ibm.last             the nodes of "ibm" anywhere: upwards checked, then `last` below
#
# Stage by stage. With the nodes reached so far (the frontier) and the literals still to come, the one with the
# fewest nodes in the postings is chosen, and the frontier goes down towards it as long as it has met no more
# nodes than those are; then the postings take its place. So a stage costs at most about twice the cheaper way,
# without any guess about how the names branch, and a whole answer at most
#
#     words of the filter x names that have its rarest literal at its position   (or what matches, below a prefix)

from libc.stdint cimport uint32_t

from matchcore.allocator cimport Numbers
from matchcore.trie cimport Trie


cdef enum:
    SLACK = 16        # nodes met before the postings are worth a thought


# Scratch of a search, kept for the next.
cdef struct Descent:
    int slack         # SLACK; for tests -1: the postings take over at every literal
    Numbers frontier
    Numbers ahead
    Numbers found     # the nodes of the names that match, each once


cdef void descent_free(Trie* trie, Descent* descent) noexcept nogil

# The names that match these canonical tokens (word ids, TOKEN_ONE, TOKEN_MANY), of which there are at most 1,024.
# `no_dollar`: the filter refuses a first word that begins with `$`. -1: no memory.
cdef int trie_ask(
    Trie* trie, Descent* descent, const uint32_t* tokens, uint32_t count, bint no_dollar
) noexcept nogil
