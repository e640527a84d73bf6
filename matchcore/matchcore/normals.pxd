# The form of a selector without NOT and constants: `draft.normals`, `draft.normal` and `draft.tests`.

from matchcore.draft cimport SelectorDraft

cdef int make_normals(SelectorDraft draft) except -1
