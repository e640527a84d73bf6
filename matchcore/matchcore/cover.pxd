# Which access keys a selector gets (access.pxd).

from libc.stdint cimport uint32_t

from matchcore.access cimport Access
from matchcore.draft cimport NormalNode, SelectorDraft

# Fills in draft.is_keyed, and, if so, draft.choices and which tests have the keys, for normals whose attributes have
# numbers. Not keyed: no cover is cheap. The tests are counted in their columns, once for each step that they will have,
# and what it has seen of values; cover_forget takes that back, also after MemoryError.
cdef int choose_keys(SelectorDraft draft, Access* access) except -1
cdef void cover_forget(SelectorDraft draft, Access* access) noexcept

# How many steps of a program a test takes.
cdef uint32_t steps_of(SelectorDraft draft, const NormalNode* leaf) noexcept

# Writes the choices to `entries` as access entries, when the steps of `count` are emitted; how many units.
cdef uint32_t write_entries(SelectorDraft draft, uint32_t* entries, uint32_t count) noexcept
