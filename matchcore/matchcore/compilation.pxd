# Selectors are compiled here: to a program, the entries of its access keys, and a glance. Nothing of it is Python code,
# so whoever inserts a selector changes its tables at once, while it holds the GIL.

from libc.stdint cimport uint32_t

from matchcore.access cimport Access
from matchcore.draft cimport SelectorDraft
from matchcore.fields cimport Attributes
from matchcore.glance cimport Glance

# Fills in draft.program, and, where there is an `access` (else NULL), its entries behind it and draft.is_keyed.
# The program holds its attributes once for each test, which is counted in `access`, too: draft_forget takes both back.
# All or nothing: raises ValueError of more than 64 tests, OverflowError of too many attributes, MemoryError.
cdef int compile_draft(SelectorDraft draft, Attributes attributes, Access* access, Glance* glance) except -1
cdef void draft_forget(SelectorDraft draft, Attributes attributes, Access* access) noexcept

# The program of a selector alone, to be copied to wherever it is kept; program_release releases its attributes.
cdef bytes program_of(object selector, Attributes attributes)
