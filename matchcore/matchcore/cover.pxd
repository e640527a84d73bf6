# Which access keys a selector gets (access.pxd).

from matchcore.access cimport Access
from matchcore.fields cimport Attributes

# The entries of a selector (its form without NOT). `is_keyed` false: no cover is cheap, and there are only entries of
# KEY_NOTED. What it has seen of values is counted; access_forget takes that back. Adds the numbers of attributes that
# it has acquired to `acquired`, also if it raises MemoryError or OverflowError, and to `leaves` those that have the
# keys.
cdef bytes access_entries(
    Access* access, object normal, Attributes attributes, list acquired, list leaves, bint* is_keyed
)
