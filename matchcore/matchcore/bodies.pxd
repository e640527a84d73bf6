# Bodies of messages, read for the fields that selectors ask for: what msgpack_body and json_body have in common.
#
#   {"price": 120, "order": {"lines": [...], "urgent": true}, "note": "..."}
#      |              |          |             |                 nobody asks: passed over, and still checked
#      |              |          |             payload.order.urgent -> Field
#      |              |          passed over
#      |              a node of the tree of names: goes down
#      payload.price -> Field
#
# * A value counts once: of several with the same path the first that is not absent (null, NaN). So a reader may stop as
#   soon as it has all that is asked for, and does; what is behind that is not looked at.
# * Text is borrowed from the body, or from the TextScratch, if it had to be decoded.
# * What is passed over needs no recursion, and no memory but LEVELS_MOST words.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from matchcore.fields cimport FIELD_ABSENT, Attributes, Field, Fields
from matchcore.utf8 cimport is_utf8

cdef enum:
    BODY_BYTES_MOST = 64 * 1024    # of a body that is read: up to 0.4 ms of the loop that routes messages
    LEVELS_MOST = 8                # maps and lists inside each other, the body's own the first

cdef enum BodyFault:
    SOUND = 0
    MALFORMED = 1
    TOO_DEEP = 2

# Where text is put together that does not lie in the body as it reads: BODY_BYTES_MOST, and text only becomes shorter.
cdef struct TextScratch:
    char* data
    Py_ssize_t used

cdef enum:
    GUESSES = 64           # a power of two
    GUESSED_BYTES = 28     # of a name; longer ones are looked up each time

# What Attributes has said of the names of the body before, in their order: bodies of one kind have the same names
# again, and to compare one with its guess is quicker than to look it up. Of no use after Attributes has changed.
cdef struct Guess:
    int parent             # node below which it was; 0: there is no guess
    int node               # -1: nobody asks for it, nor for anything below it
    int number             # -1: nobody asks for it
    bint below             # does anybody ask for something below it?
    uint32_t size
    char[GUESSED_BYTES] name

cdef struct Guesses:
    Guess[GUESSES] names
    uint32_t at            # the one for the next name
    uint64_t changes       # of Attributes, until then

cdef inline const Guess* look_up(
    Attributes attributes, Guesses* guesses, int parent, const char* name, Py_ssize_t size
) noexcept nogil:
    """What is asked for by this name below a node of the tree. Valid until the next is looked up."""
    cdef Guess* guess = &guesses.names[guesses.at]
    guesses.at = (guesses.at + 1) & (GUESSES - 1)
    if guess.size == <uint32_t> size and guess.parent == parent and memcmp(guess.name, name, size) == 0:
        return guess
    guess.node = attributes.child(parent, name, size)
    guess.number = attributes.number_of(guess.node) if guess.node >= 0 else -1
    guess.below = guess.node >= 0 and attributes.has_below(guess.node)
    guess.parent = 0
    if size <= GUESSED_BYTES:
        guess.parent = parent
        guess.size = <uint32_t> size
        memcpy(guess.name, name, size)
    return guess

cdef inline bint is_wanted(Fields fields, int number) noexcept nogil:
    """Is the number asked for, and has it no value so far?"""
    return number >= 0 and fields.at[number].kind == FIELD_ABSENT

cdef inline bint keep_found(Fields fields, int number, const Field* found, uint32_t* missing) noexcept nogil:
    """Keep a value that was found. False: it was the last that is asked for."""
    if found.kind != FIELD_ABSENT and is_wanted(fields, number):
        fields.set(number)[0] = found[0]
        missing[0] -= 1
        return missing[0] != 0
    return True

cdef inline bint is_text(const uint8_t* at, Py_ssize_t size) noexcept nogil:
    """UTF-8? For short text that is ASCII, which most is, in two looks."""
    cdef uint64_t eight, last
    cdef uint32_t four, last_four
    if 8 <= size <= 16:
        memcpy(&eight, at, 8)
        memcpy(&last, at + size - 8, 8)
        if not (eight | last) & <uint64_t> 0x8080808080808080:
            return True
    elif 4 <= size < 8:
        memcpy(&four, at, 4)
        memcpy(&last_four, at + size - 4, 4)
        if not (four | last_four) & <uint32_t> 0x80808080:
            return True
    elif size < 4:
        if size <= 0 or not (at[0] | at[size >> 1] | at[size - 1]) & 0x80:
            return True
    return is_utf8(at, size)
