# JSON as text, by RFC 8259: strings, numbers, literals and what is passed over, for those who read bodies (json_body)
# and columns (json_columns). Each takes a place in a text and gives the place behind what it has read, NULL for what is
# not sound. A module that includes this calls `json_open_locale` when it is imported.

from libc.math cimport isfinite
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from matchcore.bodies cimport MALFORMED, SOUND, TOO_DEEP, BodyFault
from matchcore.fields cimport Field, field_boolean, field_float, field_integer
from matchcore.utf8 cimport is_utf8

cdef extern from *:
    """
    #include <locale.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    #ifdef __APPLE__
    #include <xlocale.h>
    #endif

    static const double json_powers[] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22,
    };

    static locale_t json_locale;

    static int json_open_locale(void) {
        json_locale = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
        return json_locale != (locale_t) 0;
    }

    /* With a point, whatever the locale of the process. */
    static double json_float(const unsigned char *at) {
        return strtod_l((const char *) at, NULL, json_locale);
    }

    /* The place of the first of eight octets that ends a run of plain characters: a quote, a backslash, a control
       character, or one that is not ASCII; 8: none does. In each term the lowest bit that is set is exact. */
    static inline int json_plain(const unsigned char *at) {
        const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
        uint64_t eight, quote, slash, hit;
        memcpy(&eight, at, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        eight = __builtin_bswap64(eight);
    #endif
        quote = eight ^ ones * 0x22;
        slash = eight ^ ones * 0x5C;
        hit = ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((eight - ones * 0x20) & ~eight) | eight;
        hit &= highs;
        return hit ? __builtin_ctzll(hit) >> 3 : 8;
    }
    """
    const double* json_powers
    bint json_open_locale() noexcept
    double json_float(const uint8_t* at) noexcept nogil
    int json_plain(const uint8_t* at) noexcept nogil

cdef enum:
    EXACT_POWER = 22             # 10^22 is a float exactly, 10^23 is not
    DIGITS_KEPT = 19             # of them 64 bits hold any number
    EXPONENT_MOST = 100_000      # beyond the longest number that fits a body: more digits of an exponent change nothing

# A string where it lies, without its quotes.
cdef struct JsonString:
    const uint8_t* at
    Py_ssize_t size
    bint escaped


cdef inline const uint8_t* pass_blanks(const uint8_t* at, const uint8_t* end) noexcept nogil:
    while at < end and at[0] <= 0x20 and (at[0] == 0x20 or at[0] == 0x0A or at[0] == 0x0D or at[0] == 0x09):
        at += 1
    return at


cdef inline int hex_digit(uint8_t character) noexcept nogil:
    if 0x30 <= character <= 0x39:
        return character - 0x30
    character |= 0x20
    return character - 0x61 + 10 if 0x61 <= character <= 0x66 else -1


cdef inline int four_digits(const uint8_t* at) noexcept nogil:
    """The number that four hexadecimal digits are, -1: they are not."""
    cdef int first = hex_digit(at[0]), second = hex_digit(at[1]), third = hex_digit(at[2]), last = hex_digit(at[3])
    return -1 if (first | second | third | last) < 0 else first << 12 | second << 8 | third << 4 | last


cdef inline const uint8_t* take_string(const uint8_t* at, const uint8_t* end, JsonString* found) noexcept nogil:
    """Behind the string whose first character `at` is; NULL: it is not sound."""
    cdef bint wide = False
    cdef uint8_t character
    cdef int plain
    found.at = at
    found.escaped = False
    while True:
        while end - at >= 8:
            plain = json_plain(at)
            at += plain
            if plain < 8:
                break
        if at >= end:
            return NULL
        character = at[0]
        if character == c'"':
            break
        if character == c"\\":
            found.escaped = True
            if end - at < 2:
                return NULL
            character = at[1]
            if character == c"u":
                if end - at < 6 or four_digits(at + 2) < 0:
                    return NULL
                at += 6
            elif character == c'"' or character == c"\\" or character == c"/" or character == c"b" \
                    or character == c"f" or character == c"n" or character == c"r" or character == c"t":
                at += 2
            else:
                return NULL
        elif character < 0x20:
            return NULL
        else:
            wide |= character >= 0x80
            at += 1
    found.size = at - found.at
    return at + 1 if not wide or is_utf8(found.at, found.size) else NULL


cdef inline char* put_character(char* into, uint32_t code) noexcept nogil:
    """A character in UTF-8; behind it."""
    if code < 0x80:
        into[0] = <char> code
        return into + 1
    if code < 0x800:
        into[0] = <char> (0xC0 | code >> 6)
        into[1] = <char> (0x80 | code & 0x3F)
        return into + 2
    if code < 0x10000:
        into[0] = <char> (0xE0 | code >> 12)
        into[1] = <char> (0x80 | code >> 6 & 0x3F)
        into[2] = <char> (0x80 | code & 0x3F)
        return into + 3
    into[0] = <char> (0xF0 | code >> 18)
    into[1] = <char> (0x80 | code >> 12 & 0x3F)
    into[2] = <char> (0x80 | code >> 6 & 0x3F)
    into[3] = <char> (0x80 | code & 0x3F)
    return into + 4


cdef inline char plain_of(uint8_t escape) noexcept nogil:
    """What the letter behind a backslash stands for."""
    if escape == c"b":
        return 8
    if escape == c"f":
        return 12
    if escape == c"n":
        return 10
    if escape == c"r":
        return 13
    if escape == c"t":
        return 9
    return <char> escape


cdef inline Py_ssize_t decode_string(const JsonString* string, char* into) noexcept nogil:
    """The size of a sound string with its escapes decoded, which is less than it has; -1: half a surrogate pair."""
    cdef const uint8_t* at = string.at
    cdef const uint8_t* end = at + string.size
    cdef char* start = into
    cdef uint32_t code, low
    while at < end:
        if at[0] != c"\\":
            into[0] = <char> at[0]
            into += 1
            at += 1
        elif at[1] != c"u":
            into[0] = plain_of(at[1])
            into += 1
            at += 2
        else:
            code = <uint32_t> four_digits(at + 2)
            at += 6
            if 0xD800 <= code < 0xE000:
                if code >= 0xDC00 or end - at < 6 or at[0] != c"\\" or at[1] != c"u":
                    return -1
                low = <uint32_t> four_digits(at + 2)
                if not 0xDC00 <= low < 0xE000:
                    return -1
                code = 0x10000 + (code - 0xD800 << 10) + (low - 0xDC00)
                at += 6
            into = put_character(into, code)
    return into - start


cdef inline const uint8_t* take_number(const uint8_t* at, const uint8_t* end, Field* found) noexcept nogil:
    """Behind the number that begins at `at`; NULL: there is no number, or the body ends with it, which no object does.

    found  NULL: nobody asks for it
    """
    cdef const uint8_t* start = at
    cdef const uint8_t* first
    cdef bint negative = at[0] == c"-", lowered = False, whole = True
    cdef uint64_t digits = 0
    cdef int power = 0, exponent = 0
    cdef Py_ssize_t count
    cdef double value
    at += negative
    first = at
    while at < end and 0x30 <= at[0] <= 0x39:
        digits = digits * 10 + (at[0] - 0x30)
        at += 1
    count = at - first
    if count == 0 or (count > 1 and first[0] == c"0"):
        return NULL
    if at < end and at[0] == c".":
        at += 1
        first = at
        while at < end and 0x30 <= at[0] <= 0x39:
            digits = digits * 10 + (at[0] - 0x30)
            at += 1
        if at == first:
            return NULL
        count += at - first
        power = -<int> (at - first)
        whole = False
    if at < end and at[0] | 0x20 == c"e":
        at += 1
        if at < end and (at[0] == c"-" or at[0] == c"+"):
            lowered = at[0] == c"-"
            at += 1
        first = at
        while at < end and 0x30 <= at[0] <= 0x39:
            if exponent < EXPONENT_MOST:
                exponent = exponent * 10 + (at[0] - 0x30)
            at += 1
        if at == first:
            return NULL
        power += -exponent if lowered else exponent
        whole = False
    if at >= end:
        return NULL
    if found is NULL:
        return at
    if whole and count <= DIGITS_KEPT and digits <= <uint64_t> INT64_MAX + negative:
        field_integer(found, <int64_t> (0 - digits if negative else digits))
        return at
    if count <= DIGITS_KEPT and (power == 0 or (digits <= <uint64_t> 1 << 53 and -EXACT_POWER <= power <= EXACT_POWER)):
        value = <double> digits
        value = value * json_powers[power] if power >= 0 else value / json_powers[-power]
        field_float(found, -value if negative else value)
        return at
    # It is read where it lies: what follows the number is still in the body, and no part of one.
    value = json_float(start)
    if isfinite(value):
        field_float(found, value)
    return at


cdef inline const uint8_t* take_literal(const uint8_t* at, const uint8_t* end, Field* found) noexcept nogil:
    """Behind true, false or null; NULL: something else is there."""
    if end - at >= 4 and memcmp(at, b"true", 4) == 0:
        if found is not NULL:
            field_boolean(found, True)
        return at + 4
    if end - at >= 5 and memcmp(at, b"false", 5) == 0:
        if found is not NULL:
            field_boolean(found, False)
        return at + 5
    return at + 4 if end - at >= 4 and memcmp(at, b"null", 4) == 0 else NULL


cdef inline const uint8_t* take_scalar(
    const uint8_t* at, const uint8_t* end, Field* found, JsonString* string
) noexcept nogil:
    """Behind a string, a number or a literal at `at`; NULL: something else is there.

    found   gets a number or a literal; NULL: nobody asks for it
    string  gets a string
    """
    if at[0] == c'"':
        return take_string(at + 1, end, string)
    if at[0] == c"-" or 0x30 <= at[0] <= 0x39:
        return take_number(at, end, found)
    return take_literal(at, end, found)


cdef inline const uint8_t* take_name(const uint8_t* at, const uint8_t* end, JsonString* name) noexcept nogil:
    """At the value behind a member's name and its colon; NULL: they are not there."""
    if at >= end or at[0] != c'"':
        return NULL
    at = take_string(at + 1, end, name)
    if at is NULL:
        return NULL
    at = pass_blanks(at, end)
    if at >= end or at[0] != c":":
        return NULL
    at = pass_blanks(at + 1, end)
    return at if at < end else NULL


cdef inline const uint8_t* pass_container(
    const uint8_t* at, const uint8_t* end, int levels, BodyFault* fault
) noexcept nogil:
    """Where the array or object at `at` ends, which may have `levels` inside each other; NULL: `fault` says why."""
    cdef uint32_t objects = 0    # a bit for each level: is it an object?
    cdef int depth = 0
    cdef JsonString string
    cdef uint8_t close
    fault[0] = MALFORMED
    while True:
        # At a value.
        if at >= end:
            return NULL
        if at[0] == c"{" or at[0] == c"[":
            if depth >= levels:
                fault[0] = TOO_DEEP
                return NULL
            depth += 1
            objects = objects << 1 | (at[0] == c"{")
            close = c"}" if objects & 1 else c"]"
            at = pass_blanks(at + 1, end)
            if at >= end:
                return NULL
            if at[0] != close:
                if objects & 1:
                    at = take_name(at, end, &string)
                    if at is NULL:
                        return NULL
                continue
            at += 1
            depth -= 1
            objects >>= 1
        else:
            at = take_scalar(at, end, NULL, &string)
            if at is NULL:
                return NULL
        # Behind one.
        while True:
            if depth == 0:
                fault[0] = SOUND
                return at
            at = pass_blanks(at, end)
            if at >= end:
                return NULL
            if at[0] == c",":
                at = pass_blanks(at + 1, end)
                if objects & 1:
                    at = take_name(at, end, &string)
                    if at is NULL:
                        return NULL
                break
            if at[0] != (c"}" if objects & 1 else c"]"):
                return NULL
            at += 1
            depth -= 1
            objects >>= 1
