# cython: language_level=3
"""Texts as topics: the test MATCHES, for programs. The definition is in kleene.py.

The filter is its text, read as it is compared: a word is found by its end. As in LIKE, what lies between two `#` is
looked for once, from the left, so only the last `#` is ever gone back to.
"""

from libc.string cimport memchr, memcmp


cdef inline size_t _end(const uint8_t* text, size_t at, size_t size, int separator) noexcept nogil:
    """Where the word that begins at `at` ends."""
    cdef const uint8_t* found
    if at >= size:
        return size
    found = <const uint8_t*> memchr(text + at, separator, size - at)
    return size if found == NULL else <size_t> (found - text)


cdef bint text_is_on(
    const uint8_t* text, size_t size, const uint8_t* filter, size_t filter_size, bint is_mqtt, uint64_t* steps
) noexcept nogil:
    cdef int separator = c"/" if is_mqtt else c"."
    cdef uint8_t one = c"+" if is_mqtt else c"*"
    # Where the next word begins; behind the end by one: there is none. In AMQP the empty text has no words.
    cdef size_t at = 0 if size != 0 or is_mqtt else 1
    cdef size_t p = 0 if filter_size != 0 or is_mqtt else 1
    cdef size_t part = 0           # of the filter: behind the last `#`
    cdef size_t begun = 0          # of the text: where that part was begun last
    cdef bint free = False         # there was a `#`
    cdef size_t word_end, token_end
    if is_mqtt and size != 0 and text[0] == c"$" and (filter[0] == c"#" or filter[0] == one):
        return False
    while at <= size:
        steps[0] += 1
        if p <= filter_size:
            token_end = _end(filter, p, filter_size, separator)
            if token_end == p + 1 and filter[p] == c"#":
                p = token_end + 1
                if p > filter_size:
                    return True
                part, begun, free = p, at, True
                continue
            word_end = _end(text, at, size, separator)
            if (token_end == p + 1 and filter[p] == one) or (
                token_end - p == word_end - at and memcmp(filter + p, text + at, word_end - at) == 0
            ):
                p = token_end + 1
                at = word_end + 1
                continue
        if not free:
            return False
        begun = _end(text, begun, size, separator) + 1
        at, p = begun, part
    while p <= filter_size:
        token_end = _end(filter, p, filter_size, separator)
        if token_end != p + 1 or filter[p] != c"#":
            return False
        p = token_end + 1
    return True


def _is_on(text: bytes, filter: bytes, is_mqtt: bool) -> tuple:
    """For tests: whether a text is on a filter, and in how many steps that was decided."""
    cdef uint64_t steps = 0
    held = text_is_on(
        <const uint8_t*> <const char*> text, len(text), <const uint8_t*> <const char*> filter, len(filter), is_mqtt,
        &steps,
    )
    return held, steps
