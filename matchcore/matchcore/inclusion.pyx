# cython: language_level=3, annotation_typing=False
"""Whether one filter matches everything that another one matches, and whether two meet: exact, in time words x words.

What is decided: is every topic that `b` matches matched by `a`? Topics are those that can be written in either
syntax, of any length. A filter in canonical form is read as literals at distances:

    a . * . # . b . c . *        start -0- a -1+- b -0- c -1- end       n words between, or n and more

`a` covers `b` if its literals can be laid onto literals of `b`, in order and greedily: each run of literals
that stand at exact distances (a segment) at the first place behind the one before it where the words agree, where
no MANY of `b` lies inside it, and where the words that `b` has at least in between are as many as `a` asks for.
What begins with `a`'s start begins with `b`'s; what ends with its end ends with `b`'s.

Why that is enough. The words of a topic at those places are the literals of `a`; between them are as many words as
`b` has there at least, and no more where no MANY is: so `a` matches it.

Why it must be so. If the greedy laying fails, this topic is matched by `b` and not by `a`: every ONE is a word z
that no filter names, and every MANY is either nothing or more z than `a` has words. It is nothing where it lies
among the first n words behind a segment that was laid, or behind the start, before a distance of n and more; it is
long elsewhere. In this topic `a` can lay each segment no earlier than the greedy laying did: before the n-th word
the distance forbids it; then every MANY is long up to the end of the segment's place, and a segment, which begins
and ends with a literal, cannot reach over more z than it has words, nor lay a literal on z. (The words whose MANYs
are nothing for the next distance lie behind that.) So it lacks a place in the topic too, or words before the last
segment, which the end holds where it is.

A fresh z beginning with `$` is the first word where `b` begins with a wildcard that takes it. So of a wildcard
of MQTT, which refuses `$` (MQTT 5, 4.7.2): it covers what does not begin with `$`; that is, literals without it and
wildcards of MQTT. One sequence of words is no topic, the empty word alone: both syntaxes write it as nothing. A filter
that matches it with its only literal (`/#` in MQTT) is parted in the filters that need another word (`/+/#`).
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp, memset

from matchcore.hashing cimport hash_secret
from matchcore.syntax cimport (
    AMQP, LITERAL, MANY, MQTT, ONE, Fault, Limits, Token, View, canonical, filter_error, scan_filter, take_syntax,
    take_text,
)

__all__ = ["covers", "intersects"]

cdef enum:
    WORDS_AT_MOST = 1024  # the most an index may be made for
    BYTES_AT_MOST = 1 << 30


# A canonical filter; its tokens are of malloc, with room for one more.
cdef struct Parsed:
    Token* tokens
    int count
    bint no_dollar


cdef int _parse(object text, object syntax, Parsed* parsed) except -1:
    cdef uint32_t number = take_syntax(syntax)
    cdef View view
    cdef Fault fault
    cdef Limits limits
    take_text(text, &view, number, True)
    limits.bytes = BYTES_AT_MOST
    limits.words = <uint32_t> min(view.size + 1, <size_t> WORDS_AT_MOST)
    parsed.tokens = <Token*> malloc((limits.words + 1) * sizeof(Token))
    if parsed.tokens == NULL:
        raise MemoryError()
    parsed.count = scan_filter(view.start, view.size, number, &limits, parsed.tokens, &fault)
    if parsed.count < 0:
        raise filter_error(&view, number, &limits, &fault)
    parsed.no_dollar = number == MQTT and parsed.tokens[0].kind != LITERAL
    parsed.count = canonical(parsed.tokens, parsed.count)
    return 0


# ---- one filter laid onto another ------------------------------------------------------------------

cdef inline bint _lies_on(const Token* mine, const Token* theirs) noexcept nogil:
    """Whether one word of `a` takes the token of `b` for exactly one word."""
    if theirs.kind == MANY:
        return False
    if mine.kind == ONE:
        return True
    return (
        theirs.kind == LITERAL and mine.hash == theirs.hash and mine.size == theirs.size
        and memcmp(mine.start, theirs.start, mine.size) == 0
    )


cdef bint _all_lie(const Token* a, const Token* b, int count) noexcept nogil:
    cdef int i
    for i in range(count):
        if not _lies_on(&a[i], &b[i]):
            return False
    return True


cdef bint _lay(const Token* a, int a_count, const Token* b, int b_count) noexcept nogil:
    """`a` laid onto `b`, both canonical; nothing is said of `$`."""
    cdef int many = 0          # of a: the MANY before the segment that is looked at
    cdef int last              # of a: the last MANY
    cdef int at                # of b: behind what is laid
    cdef int begin, end, size, distance, suffix
    while many < a_count and a[many].kind != MANY:
        many += 1
    if many == a_count:
        return a_count == b_count and _all_lie(a, b, a_count)
    last = a_count - 1
    while a[last].kind != MANY:
        last -= 1
    suffix = a_count - 1 - last
    # The ONEs before a MANY are a distance: they are no part of the segment before them.
    end = many
    while end > 0 and a[end - 1].kind == ONE:
        end -= 1
    distance = many - end
    if end > b_count or not _all_lie(a, b, end):
        return False
    at = end
    while many != last:
        begin = many + 1
        many = begin
        while a[many].kind != MANY:
            many += 1
        end = many
        while a[end - 1].kind == ONE:
            end -= 1
        size = end - begin
        while distance > 0 and at < b_count:
            if b[at].kind != MANY:
                distance -= 1
            at += 1
        while at + size <= b_count and not _all_lie(&a[begin], &b[at], size):
            at += 1
        if distance > 0 or at + size > b_count:
            return False
        at += size
        distance = many - end
    if at + suffix > b_count or not _all_lie(&a[a_count - suffix], &b[b_count - suffix], suffix):
        return False
    while distance > 0 and at < b_count - suffix:
        if b[at].kind != MANY:
            distance -= 1
        at += 1
    return distance == 0


cdef int _empty_word_alone(const Parsed* b) noexcept nogil:
    """Where the only literal of `b` is, if that is the empty word and all else is MANY; -1: it is not so."""
    cdef int literal = -1
    cdef int i
    for i in range(b.count):
        if b.tokens[i].kind == LITERAL and b.tokens[i].size == 0 and literal < 0:
            literal = i
        elif b.tokens[i].kind != MANY:
            return -1
    return literal


cdef void _put_one(Token* to, const Token* tokens, int count, int place) noexcept nogil:
    """`tokens` with a ONE at `place`."""
    cdef int i
    for i in range(place):
        to[i] = tokens[i]
    to[place].kind = ONE
    for i in range(place, count):
        to[i + 1] = tokens[i]


cdef bint _covers(const Parsed* a, const Parsed* b) noexcept nogil:
    cdef Token[4] parted
    cdef int literal = _empty_word_alone(b)
    if a.no_dollar and not b.no_dollar:
        if b.count != 0 and (
            b.tokens[0].kind != LITERAL or (b.tokens[0].size != 0 and b.tokens[0].start[0] == c"$")
        ):
            return False
    if literal < 0:
        return _lay(a.tokens, a.count, b.tokens, b.count)
    # At most MANY, the empty word, MANY: with one word more before the literal, or behind it.
    if literal > 0:
        _put_one(parted, b.tokens, b.count, 0)
        if not _lay(a.tokens, a.count, parted, b.count + 1):
            return False
    if literal < b.count - 1:
        _put_one(parted, b.tokens, b.count, literal + 1)
        if not _lay(a.tokens, a.count, parted, b.count + 1):
            return False
    return True


def covers(
    a: str | bytes, b: str | bytes, *, a_syntax: str = "amqp", b_syntax: str = "amqp", where_a=None, where_b=None
) -> bool:
    """Whether filter `a` matches every topic that filter `b` matches; each may be in a syntax of its own.

    Topics of any length count, not only those within the limits of some index. With selectors (text, dict or tree):
    every message; True only where it is proven (implication.py). Time: words x words at most, under 2 µs for filters of
    a few words, 1 ms for two of a thousand; and for selectors up to 100 ms. Raises InvalidFilter, as an index of 1,024
    words would, and InvalidSelector.
    """
    cdef Parsed mine, theirs
    cdef bint covered
    mine.tokens = theirs.tokens = NULL
    try:
        _parse(a, a_syntax, &mine)
        _parse(b, b_syntax, &theirs)
        covered = _covers(&mine, &theirs)
    finally:
        free(mine.tokens)
        free(theirs.tokens)
    return covered if where_a is None and where_b is None else _implied(where_a, where_b, covered)


# ---- two filters that meet -------------------------------------------------------------------------

cdef enum:
    # What a topic has so far, a bit each: of one place several are possible.
    NO_WORD = 1
    EMPTY_WORD = 2   # and nothing else, which is no topic
    SOME_WORDS = 4


cdef bint _writable(const Token* token, uint32_t syntax) noexcept nogil:
    """Whether a topic of that syntax may have the word."""
    if token.size == 0:
        return True
    if syntax == AMQP:
        return memchr(token.start, c".", token.size) == NULL
    return (
        memchr(token.start, c"/", token.size) == NULL and memchr(token.start, c"+", token.size) == NULL
        and memchr(token.start, c"#", token.size) == NULL and memchr(token.start, 0, token.size) == NULL
    )


cdef inline uint8_t _after(uint8_t so_far, const Token* word, bint no_dollar) noexcept nogil:
    """What a topic may have with this word behind; NULL: a word that no filter names."""
    if word == NULL:
        return SOME_WORDS
    if word.size == 0:
        return (EMPTY_WORD if so_far & NO_WORD else 0) | (SOME_WORDS if so_far & ~NO_WORD else 0)
    if no_dollar and word.start[0] == c"$":
        so_far &= ~NO_WORD
    return SOME_WORDS if so_far != 0 else 0


cdef bint _meet(
    const Token* a, int a_count, const Token* b, int b_count, bint no_dollar, uint32_t syntax, uint8_t* row,
    uint8_t* below
) noexcept nogil:
    """Whether both match a topic of that syntax. A cell is a token of each that may be next; two rows of b_count + 1.

    Words that one has to take as it is written are taken from there; where neither has one, it is a fresh one, which
    does not begin with `$`.
    """
    cdef uint8_t here
    cdef const Token* word
    cdef bint mine, theirs     # takes more words than one
    cdef int i, j
    memset(row, 0, <size_t> b_count + 1)
    row[0] = NO_WORD
    for i in range(a_count + 1):
        memset(below, 0, <size_t> b_count + 1)
        mine = i < a_count and a[i].kind == MANY
        for j in range(b_count + 1):
            theirs = j < b_count and b[j].kind == MANY
            here = row[j]
            if here != 0 and mine and theirs:
                here |= SOME_WORDS
                row[j] = here
            if here == 0:
                continue
            if mine:
                below[j] |= here           # no word more
            if theirs:
                row[j + 1] |= here
            if mine and j < b_count and not theirs:
                word = &b[j] if b[j].kind == LITERAL else NULL
                if word == NULL or _writable(word, syntax):
                    row[j + 1] |= _after(here, word, no_dollar)
            elif theirs and i < a_count and not mine:
                word = &a[i] if a[i].kind == LITERAL else NULL
                if word == NULL or _writable(word, syntax):
                    below[j] |= _after(here, word, no_dollar)
            elif i < a_count and j < b_count and not mine and (_lies_on(&a[i], &b[j]) or b[j].kind == ONE):
                word = &a[i] if a[i].kind == LITERAL else &b[j] if b[j].kind == LITERAL else NULL
                if word == NULL or _writable(word, syntax):
                    below[j + 1] |= _after(here, word, no_dollar)
        if i < a_count:
            row, below = below, row
    here = row[b_count]
    # In MQTT a topic has a word at least.
    return here & SOME_WORDS != 0 or (syntax == AMQP and here & NO_WORD != 0)


def intersects(
    a: str | bytes, b: str | bytes, *, a_syntax: str = "amqp", b_syntax: str = "amqp", where_a=None, where_b=None
) -> bool:
    """Whether some topic is matched by both filters; each may be in a syntax of its own.

    Topics of any length count, in either syntax. With selectors (text, dict or tree): whether some message may be
    matched by both; False only where it is proven that none is. Time: words x words at most, and for selectors up to
    50 ms. Raises InvalidFilter, InvalidSelector.
    """
    cdef Parsed mine, theirs
    cdef uint8_t* rows = NULL
    cdef bint no_dollar, found
    mine.tokens = theirs.tokens = NULL
    try:
        _parse(a, a_syntax, &mine)
        _parse(b, b_syntax, &theirs)
        rows = <uint8_t*> malloc(2 * (<size_t> theirs.count + 1))
        if rows == NULL:
            raise MemoryError()
        no_dollar = mine.no_dollar or theirs.no_dollar
        found = _meet(
            mine.tokens, mine.count, theirs.tokens, theirs.count, no_dollar, AMQP, rows, rows + theirs.count + 1
        ) or _meet(
            mine.tokens, mine.count, theirs.tokens, theirs.count, no_dollar, MQTT, rows, rows + theirs.count + 1
        )
    finally:
        free(rows)
        free(mine.tokens)
        free(theirs.tokens)
    return found if where_a is None and where_b is None else _may_meet(where_a, where_b, found)


# Selectors are decided in Python, which is imported only for them.

def _implied(where_a, where_b, bint covered):
    from matchcore.implication import implies
    return implies(_selector(where_b), _selector(where_a)) and covered


def _may_meet(where_a, where_b, bint found):
    from matchcore.implication import disjoint
    return not disjoint(_selector(where_a), _selector(where_b)) and found


def _selector(where):
    from matchcore.patterns import selector_of
    return selector_of("TRUE" if where is None else where)


# ---- for a set of filters: subsumption.py ----------------------------------------------------------

cdef const uint64_t* secret = hash_secret()
cdef bytes FRESH = b"\x01z"
cdef bytes FRESH_DOLLAR = b"$\x01z"


def outline(filter: str | bytes, syntax: str) -> tuple:
    """(rank, topic): a filter has a lower rank than all others it covers, unless they match the same topics;
    and a topic in the same syntax that it matches, and that few match who do not cover it.

    The rank is (literals, words at least, -MANYs, refuses `$`). Each literal of `a` lies on another one of
    the `b` it covers; if there are as many, each distance of `a` is at most that of `b` in its place; if those
    are equal too, wherever `b` has a MANY there is one in `a`.
    """
    cdef Parsed parsed
    cdef int literals = 0
    cdef int manys = 0
    cdef int words, i, repeat, alone
    cdef list topic = []
    parsed.tokens = NULL
    try:
        _parse(filter, syntax, &parsed)
        for i in range(parsed.count):
            literals += parsed.tokens[i].kind == LITERAL
            manys += parsed.tokens[i].kind == MANY
        words = parsed.count - manys
        # Words for each MANY: so many that chance matches are rare, as nobody knows who would write filters of just
        # that length; and the topic no longer than topics may be.
        repeat = min(4 + <int> (secret[0] % 29), (WORDS_AT_MOST - words) // manys) if manys != 0 else 0
        for i in range(parsed.count):
            if parsed.tokens[i].kind == LITERAL:
                topic.append(parsed.tokens[i].start[:parsed.tokens[i].size])
            else:
                topic.extend([FRESH] * (repeat if parsed.tokens[i].kind == MANY else 1))
        if parsed.count != 0 and topic and parsed.tokens[0].kind != LITERAL and not parsed.no_dollar and (
            repeat != 0 or parsed.tokens[0].kind == ONE
        ):
            topic[0] = FRESH_DOLLAR
        alone = _empty_word_alone(&parsed)
        if alone >= 0 and manys == 1:
            words += 1  # `/#` is `/+/#`: see above
        separator = b"." if take_syntax(syntax) == AMQP else b"/"
        return (literals, words, -manys, int(parsed.no_dollar)), separator.join(topic)
    finally:
        free(parsed.tokens)
