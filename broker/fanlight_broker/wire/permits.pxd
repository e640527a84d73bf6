# Which classes may publish on which topics, beside the few that each route knows: one table for all routes.
#
#   Route.permit_serial, 4 * class + kind --hash--> a set of four entries, one line of the processor's cache
#
#   permit_known      is this pair in one of them? compared in full, so that no other pair is taken for it
#   permit_keep       into the set; if it is full, in place of one at random: that one is asked for again
#   forget_permits    all of them
#
# A route that forgets what it knows takes another serial, and no serial is given twice: what stands under the old one
# is never found again. The table begins small and grows fourfold when a quarter is in use, up to MOST_ENTRIES. What the
# smaller one has moves over when it is found, until the next growth; nothing is moved at once.

from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    WAYS = 4

cdef struct PermitEntry:
    uint64_t serial          # 0: empty
    uint32_t permit          # 4 * class + kind

cdef struct PermitSets:
    PermitEntry* entries     # at the beginning of a line; NULL: there is no table
    void* block              # that they are in
    uint64_t sets            # a power of 2
    uint64_t used            # entries

cdef uint64_t permit_serial() noexcept
cdef bint permit_known(uint64_t serial, uint32_t permit) noexcept
cdef int permit_keep(uint64_t serial, uint32_t permit) noexcept
