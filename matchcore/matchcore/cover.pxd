# Which access keys a selector gets (access.pxd).

from matchcore.access cimport Access
from matchcore.draft cimport SelectorDraft

# Fills in draft.entries, draft.is_keyed, and which tests have the keys, for normals whose attributes have numbers. Not
# keyed: no cover is cheap, and there are only entries of KEY_NOTED. What it has seen of values is counted;
# access_forget of the entries takes that back, also after MemoryError.
cdef int choose_entries(SelectorDraft draft, Access* access) except -1
