# cython: language_level=3, annotation_typing=False
"""The grammar of topic names and topic filters, for both syntaxes, in C.

A topic is a sequence of words; the syntax only says how they are written. AMQP (and native): `.`
between words, `*` one word, `#` zero or more, anywhere; a word that merely contains a wildcard is a
literal; the empty text has zero words. MQTT: `/` between levels, `+` one level, `#` zero or more,
last only, each a whole level; no empty text, no NUL, no wildcard in a topic name.

What the tokens look like is in syntax.pxd; the face for Python is grammar.py.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_Check
from libc.string cimport memchr

from matchcore.hashing cimport hash_long, hash_secret, hash_short, load_word
from matchcore.scan cimport Tail, cut_word, separators, tail_of

from matchcore.errors import InvalidFilter, InvalidTopic

cdef extern from "Python.h":
    int PyUnicode_CompareWithASCIIString(object text, const char* ascii)
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

cdef enum:
    # A filter is checked in time words x words at worst, so this stays small.
    WORDS_AT_MOST = 1024
    BYTES_AT_MOST = 1 << 30
    SEPARATORS = 128  # of a topic that is scanned quickly; one of more words is scanned slowly

cdef const uint64_t* secret = hash_secret()

# What ends a plain run of bytes in an MQTT text: / + # NUL
cdef uint8_t[256] stops
stops[<int> c"/"] = stops[<int> c"+"] = stops[<int> c"#"] = stops[0] = 1


cdef inline void _hash(Token* token) noexcept nogil:
    if token.size > 16:
        token.hash = hash_long(secret, token.start, token.size)
        token.low = token.high = 0
    else:
        load_word(token.start, token.size, &token.low, &token.high)
        token.hash = hash_short(secret, token.low, token.high, token.size)


cdef inline int _add(
    Token* out, uint32_t* count, const char* start, const char* end, uint32_t kind, const Limits* limits,
    const char* text, Fault* fault
) noexcept nogil:
    cdef Token* token
    if count[0] == limits.words:
        fault.kind = TOO_MANY_WORDS
        fault.position = start - text
        return -1
    token = &out[count[0]]
    token.start = start
    token.size = <uint32_t> (end - start)
    token.kind = kind
    _hash(token)
    count[0] += 1
    return 0


cdef inline int _check_size(size_t size, uint32_t syntax, const Limits* limits, Fault* fault) noexcept nogil:
    if size > limits.bytes:
        fault.kind = TOO_MANY_BYTES
        fault.position = limits.bytes
        return -1
    if size == 0 and syntax == MQTT:
        fault.kind = EMPTY
        fault.position = 0
        return -1
    return 0


cdef int _scan_dots(
    const char* text, size_t size, bint is_filter, const Limits* limits, Token* out, Fault* fault
) noexcept nogil:
    cdef const char* end = text + size
    cdef const char* start = text
    cdef const char* stop
    cdef uint32_t count = 0
    cdef uint32_t kind
    if size == 0:
        return 0
    while True:
        stop = <const char*> memchr(start, c".", end - start)
        if stop == NULL:
            stop = end
        kind = LITERAL
        if is_filter and stop - start == 1:
            if start[0] == c"*":
                kind = ONE
            elif start[0] == c"#":
                kind = MANY
        if _add(out, &count, start, stop, kind, limits, text, fault) < 0:
            return -1
        if stop == end:
            return <int> count
        start = stop + 1


cdef int _scan_slashes(
    const char* text, size_t size, bint is_filter, const Limits* limits, Token* out, Fault* fault
) noexcept nogil:
    cdef const char* end = text + size
    cdef const char* start = text
    cdef const char* stop = text
    cdef uint32_t count = 0
    cdef uint32_t kind = LITERAL
    while True:
        while stop != end and not stops[<uint8_t> stop[0]]:
            stop += 1
        if stop != end and stop[0] != c"/":
            # A wildcard or a NUL: allowed is only a wildcard that is a whole level of a filter.
            fault.position = stop - text
            if stop[0] == 0:
                fault.kind = NUL_BYTE
                return -1
            if not is_filter:
                fault.kind = WILDCARD_IN_TOPIC
                return -1
            if stop != start or (stop + 1 != end and stop[1] != c"/"):
                fault.kind = WILDCARD_NOT_WHOLE
                return -1
            if stop[0] == c"#":
                if stop + 1 != end:
                    fault.kind = MANY_NOT_LAST
                    return -1
                kind = MANY
            else:
                kind = ONE
            stop += 1
        if _add(out, &count, start, stop, kind, limits, text, fault) < 0:
            return -1
        if stop == end:
            return <int> count
        stop += 1
        start = stop
        kind = LITERAL


cdef int scan_topic(
    const char* text, size_t size, uint32_t syntax, const Limits* limits, Token* out, Fault* fault
) noexcept nogil:
    cdef uint32_t[SEPARATORS] found
    cdef uint32_t start = 0
    cdef uint32_t stop
    cdef uint64_t hash
    cdef int count, i
    cdef Tail tail
    cdef Token* token
    if _check_size(size, syntax, limits, fault) < 0:
        return -1
    if size == 0:
        return 0
    count = separators(
        text, size, separator_of(syntax), syntax == MQTT, found,
        limits.words - 1 if limits.words <= SEPARATORS else SEPARATORS, secret, &hash,
    )
    if count < 0:
        # Too many words, or a byte that must not be there: again, slowly, to say which and where.
        if syntax == AMQP:
            return _scan_dots(text, size, False, limits, out, fault)
        return _scan_slashes(text, size, False, limits, out, fault)
    tail = tail_of(text, size)
    for i in range(count + 1):
        stop = found[i] if i < count else <uint32_t> size
        token = &out[i]
        token.start = text + start
        token.size = stop - start
        token.kind = LITERAL
        if token.size <= 16:
            cut_word(&tail, token.start, token.size, &token.low, &token.high)
            token.hash = hash_short(secret, token.low, token.high, token.size)
        else:
            token.hash = hash_long(secret, token.start, token.size)
        start = stop + 1
    return count + 1


cdef int scan_filter(
    const char* text, size_t size, uint32_t syntax, const Limits* limits, Token* out, Fault* fault
) noexcept nogil:
    if _check_size(size, syntax, limits, fault) < 0:
        return -1
    if syntax == AMQP:
        return _scan_dots(text, size, True, limits, out, fault)
    return _scan_slashes(text, size, True, limits, out, fault)


cdef int canonical(Token* tokens, int count) noexcept nogil:
    cdef int read = 0
    cdef int write = 0
    cdef Token many
    cdef bint found
    while read < count:
        if tokens[read].kind == LITERAL:
            tokens[write] = tokens[read]
            read += 1
            write += 1
            continue
        found = False
        while read < count and tokens[read].kind != LITERAL:
            if tokens[read].kind == MANY:
                many = tokens[read]
                found = True
            else:
                tokens[write] = tokens[read]
                write += 1
            read += 1
        if found:
            tokens[write] = many
            write += 1
    return write


cdef object syntax_name(uint32_t syntax):
    return "amqp" if syntax == AMQP else "mqtt"


cdef str amqp = "amqp"
cdef str mqtt = "mqtt"


cdef int take_syntax(object syntax) except -1:
    if syntax is amqp:  # as it is where the caller wrote it down
        return AMQP
    if syntax is mqtt:
        return MQTT
    # Compared in C: a subclass of str that lies about equality changes nothing.
    if not PyUnicode_Check(syntax):
        raise TypeError(f"syntax must be 'amqp' or 'mqtt', not {type(syntax).__name__}")
    if PyUnicode_CompareWithASCIIString(syntax, b"amqp") == 0:
        return AMQP
    if PyUnicode_CompareWithASCIIString(syntax, b"mqtt") == 0:
        return MQTT
    raise ValueError(f"syntax must be 'amqp' or 'mqtt', not {str.__repr__(syntax)}")


cdef int take_text(object text, View* view, uint32_t syntax, bint is_filter) except -1:
    cdef Py_ssize_t size
    if PyUnicode_Check(text):
        try:
            view.start = PyUnicode_AsUTF8AndSize(text, &size)
        except UnicodeEncodeError as error:
            kind = InvalidFilter if is_filter else InvalidTopic
            before = len(str.encode(str.__getitem__(text, slice(None, error.start))))
            raise kind(
                str.encode(text, "utf-8", "backslashreplace"), syntax_name(syntax), before,
                "a lone surrogate has no UTF-8", "give bytes, or text that UTF-8 can hold",
            ) from None
        view.size = <size_t> size
        view.is_str = True
    elif PyBytes_Check(text):
        view.start = PyBytes_AS_STRING(text)
        view.size = <size_t> PyBytes_GET_SIZE(text)
        view.is_str = False
    else:
        what = "filter" if is_filter else "topic"
        raise TypeError(f"a {what} must be str or bytes, not {type(text).__name__}")
    return 0


cdef uint32_t _limit(object name, object value, uint32_t most) except 0:
    cdef int overflow = 0
    cdef long long taken
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    # Read in C: a subclass of int that lies about order would have any room it likes.
    taken = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow != 0 or not 1 <= taken <= most:
        raise ValueError(f"{name} must be within 1..{most}")
    return <uint32_t> taken


cdef int take_limits(object max_words, object max_bytes, Limits* limits) except -1:
    limits.words = _limit("max_words", max_words, WORDS_AT_MOST)
    limits.bytes = _limit("max_bytes", max_bytes, BYTES_AT_MOST)
    return 0


cdef object _explained(uint32_t syntax, const Limits* limits, const Fault* fault, bytes text):
    cdef str mark = "."  if syntax == AMQP else "/"
    if fault.kind == EMPTY:
        return "it is empty", "an MQTT text has at least one character"
    if fault.kind == TOO_MANY_BYTES:
        return (
            f"{len(text)} bytes, and the limit is {limits.bytes}",
            "shorten it, or raise the limit (max_bytes)",
        )
    if fault.kind == TOO_MANY_WORDS:
        return (
            f"{text.count(mark.encode()) + 1} words, and the limit is {limits.words}",
            "use fewer words, or raise the limit (max_words)",
        )
    if fault.kind == NUL_BYTE:
        return "a NUL byte, which MQTT does not allow", "leave it out"
    cdef str sign = chr(text[fault.position])
    if fault.kind == WILDCARD_IN_TOPIC:
        return f"{sign!r} is a wildcard, which a topic name may not hold", "publish to a name without it"
    if fault.kind == WILDCARD_NOT_WHOLE:
        return f"{sign!r} must be a whole level", f"put it alone between slashes, or leave {sign!r} out"
    return "'#' must be the last level", "end the filter there, or use '+' for one level"


cdef object topic_error(const View* view, uint32_t syntax, const Limits* limits, const Fault* fault, object row):
    cdef bytes raw = view.start[:view.size]
    reason, advice = _explained(syntax, limits, fault, raw)
    return InvalidTopic(raw, syntax_name(syntax), fault.position, reason, advice, row)


cdef object filter_error(const View* view, uint32_t syntax, const Limits* limits, const Fault* fault):
    cdef bytes raw = view.start[:view.size]
    reason, advice = _explained(syntax, limits, fault, raw)
    return InvalidFilter(raw, syntax_name(syntax), fault.position, reason, advice)


def scan(text: str | bytes, syntax: str, is_filter: bool, max_words: int, max_bytes: int) -> list:
    """[(kind, word), ...] as written: kind 0 literal, 1 one word, 2 zero or more. For grammar.py."""
    cdef Limits limits
    cdef View view
    cdef Fault fault
    cdef int count
    cdef uint32_t number = take_syntax(syntax)
    take_limits(max_words, max_bytes, &limits)
    take_text(text, &view, number, is_filter)
    room = bytearray(limits.words * sizeof(Token))
    cdef unsigned char[::1] memory = room
    cdef Token* tokens = <Token*> &memory[0]
    if is_filter:
        count = scan_filter(view.start, view.size, number, &limits, tokens, &fault)
        if count < 0:
            raise filter_error(&view, number, &limits, &fault)
    else:
        count = scan_topic(view.start, view.size, number, &limits, tokens, &fault)
        if count < 0:
            raise topic_error(&view, number, &limits, &fault, None)
    return [(tokens[i].kind, tokens[i].start[:tokens[i].size]) for i in range(count)]
