# cython: language_level=3
"""How a screen comes to a selector: by which access keys, or in a row with others. For people, not for routing.

    key region = 'eu'                one of the values under which it hangs; BOOLEAN, text and numbers alike
    key price is in its cells        the cell of a number, of those that its range overlaps
    key name begins with 'ab'        a prefix, or a suffix
    key urgent is present
    pool of 400                      decided with others that have no selective key, in bits
    row of 40                        verified with the other selectors that have no cheap key
    list of 7                        verified with all selectors of a small screen
"""

from libc.stdint cimport uint32_t, uint64_t

from matchcore.access cimport (
    KEY_PREFIX, KEY_PRESENT, KEY_RANGE, KEY_SUFFIX, KEY_VALUE, AccessColumn, AccessEntry, AccessRange,
    access_cell, access_column, access_ends, access_step_tag, access_step_values, access_units, tag_of_affix,
    tag_of_hash,
)
from matchcore.fields cimport FIELD_ABSENT, FIELD_FLOAT, FIELD_INTEGER, Field, Fields
from matchcore.hashing cimport hash_secret
from matchcore.program cimport Program, program_bytes, program_entries, program_steps
from matchcore.screen cimport Screen
from matchcore.selections cimport IN_POOL, UNDER_SEVERAL
from matchcore.table cimport NONE
from matchcore.values cimport hash_field, is_text, number_kind, ordered_float

from matchcore.kleene import attribute_of
from matchcore.reasons import shown_value

__all__ = ["found_by"]


def found_by(Screen screen not None, ids: object, mapping: object) -> list:
    """For each id, through what a match of these fields comes to its selector: texts, none if it does not.

    That it comes there does not mean that the selector is true: it is verified then.
    """
    cdef Fields fields = Fields(screen.attributes)
    fields.load(mapping)
    values = {attribute_of(key) if isinstance(key, str) else key: value for key, value in mapping.items()}
    return [_found_by(screen, id, fields, values) for id in ids]


cdef tuple _found_by(Screen screen, uint32_t id, Fields fields, dict values):
    cdef uint32_t slot = screen._slot_of(id)
    cdef const Program* program
    cdef const uint32_t* entries
    cdef uint32_t at = 0
    cdef bytearray reached
    cdef bytes noted
    cdef unsigned char* flags
    if slot == NONE:
        return ()
    if screen.large == NULL:
        return (f"list of {screen.live}",)
    if IN_POOL <= screen.selections[slot].place < UNDER_SEVERAL:
        return (f"pool of {screen.large.pool.live}",)
    if screen.selections[slot].place < UNDER_SEVERAL:
        return (f"row of {screen.large.row.size}",)
    # Python code may run where texts are made, and the screen may change. So all that is looked at comes before.
    noted = (<const unsigned char*> screen.selections[slot].program)[: program_bytes(screen.selections[slot].program)]
    program = <const Program*> <const char*> noted
    entries = program_entries(program)
    reached = bytearray(program.entries)
    flags = reached
    while at < program.entries:
        flags[at] = _is_reached(screen, program, &entries[at], fields)
        at += access_units((<const AccessEntry*> &entries[at]).kind)
    return tuple(dict.fromkeys(_texts(screen, noted, reached, values)))


cdef uint32_t _attribute(const Program* program, const AccessEntry* entry) noexcept nogil:
    if entry.kind == KEY_RANGE:
        return (<const AccessRange*> (entry + 1)).attribute
    return program_steps(program)[entry.step].attribute


cdef bint _is_reached(Screen screen, const Program* program, const uint32_t* units, Fields fields) noexcept nogil:
    """Does the message have this key? As Screen.find asks for it."""
    cdef const AccessEntry* entry = <const AccessEntry*> units
    cdef uint32_t attribute = _attribute(program, entry)
    cdef Field* field = &fields.at[attribute]
    cdef const AccessColumn* column
    cdef uint64_t[2] hashes
    cdef uint64_t low, high, ordered
    cdef uint32_t j
    cdef int i
    if field.kind == FIELD_ABSENT:
        return False
    if entry.kind == KEY_PRESENT:
        return True
    if entry.kind == KEY_VALUE:
        for i in range(hash_field(hash_secret(), attribute, field, hashes)):
            for j in range(access_step_values(program, &program_steps(program)[entry.step])):
                if tag_of_hash(hashes[i]) == access_step_tag(program, &program_steps(program)[entry.step], j):
                    return True
        return False
    if entry.kind == KEY_RANGE:
        if number_kind(field) not in (FIELD_INTEGER, FIELD_FLOAT):
            return False
        column = access_column(&screen.large.access, attribute)
        ordered = ordered_float(<double> field.integer if number_kind(field) == FIELD_INTEGER else field.real)
        access_ends(program, entry, &low, &high)
        return access_cell(column, low) <= access_cell(column, ordered) <= access_cell(column, high)
    if not is_text(field) or field.size < units[2]:
        return False
    if entry.kind == KEY_PREFIX:
        return tag_of_affix(attribute, KEY_PREFIX, field.text, units[2]) == units[1]
    return tag_of_affix(attribute, KEY_SUFFIX, field.text + field.size - units[2], units[2]) == units[1]


cdef list _texts(Screen screen, bytes noted, bytearray reached, dict values):
    cdef const Program* program = <const Program*> <const char*> noted
    cdef const uint32_t* entries = program_entries(program)
    cdef const AccessEntry* entry
    cdef uint32_t units = <uint32_t> len(reached)
    cdef uint32_t at = 0
    texts = []
    while at < units:
        entry = <const AccessEntry*> &entries[at]
        if reached[at]:
            attribute = screen.attributes.attribute(_attribute(program, entry))
            value = values.get(attribute)
            if entry.kind == KEY_PRESENT:
                texts.append(f"key {attribute} is present")
            elif entry.kind == KEY_RANGE:
                texts.append(f"key {attribute} is in its cells")
            elif entry.kind == KEY_VALUE:
                texts.append(f"key {attribute} = {shown_value(value)}")
            else:
                part = str(value).encode("utf-8", "surrogatepass")
                part = part[:entries[at + 2]] if entry.kind == KEY_PREFIX else part[len(part) - entries[at + 2]:]
                word = "begins" if entry.kind == KEY_PREFIX else "ends"
                texts.append(f"key {attribute} {word} with {shown_value(part.decode('utf-8', 'replace'))}")
        at += access_units(entry.kind)
    return texts
