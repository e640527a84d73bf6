# What principals use of the pots that they share: counts, pot by pot. core/shares.py gives each pot its number.
#
#   PotTotals   used [ all principals ]   limit [ ]   percent [ of what the others leave, that one may use ]
#      ^                                  reserved [ for what nobody uses, and all need: it is left out of the shares ]
#      |
#   PotCounts   used [ one principal  ]
#      ^
#   PotCounts   used [ a joint one: one client whose quotas have several holders ]  --> PotCounts of these holders
#
# What a joint one counts is counted for its principal, and so in all, and for each holder. It is never `kept`: compiled
# code that takes something from it leaves the decision to Python (core.Shares).
#
# The bytes of messages and of sessions are counted elsewhere (ledger.pxd); their numbers here stay 0.

cimport cython
from libc.stdint cimport int64_t

cdef enum:
    POTS = 16

@cython.final
@cython.no_gc
cdef class PotTotals:
    cdef int64_t[POTS] used
    cdef int64_t[POTS] limits
    cdef int64_t[POTS] percents
    cdef int64_t[POTS] reserved

    cdef inline bint room(self, int pot, int64_t used, int64_t total, int64_t more) noexcept:
        """May one that uses so much use more, while all together use `total`? Without rounding, as
        `used + more <= ceil(percent / 100 * what the others leave)`.
        """
        cdef int64_t wanted = used + more
        if self.reserved[pot]:
            total = max(total, self.used[pot] + self.reserved[pot])
        return wanted <= 0 or 100 * (wanted - 1) < self.percents[pot] * (self.limits[pot] - (total - used))

@cython.final
@cython.no_gc
cdef class PotCounts:
    cdef:
        PotTotals totals
        int64_t[POTS] used
        int64_t[POTS] most            # its quota: what it may use, whatever the others leave
        public bint kept              # it is in the table of those who use anything (core.Shares)
        PotCounts root                # of a joint one: its principal's; else None
        tuple wider                   # of a joint one: those of other holders; else None

    cdef void spread(self, int pot, int64_t more) noexcept

    cdef inline bint within(self, int pot, int64_t more) noexcept:
        """Does its quota allow so much more?"""
        return more <= 0 or self.used[pot] + more <= self.most[pot]

    cdef inline bint fits(self, int pot) noexcept:
        """Has it room for one more, of what is counted here?"""
        return self.within(pot, 1) and self.totals.room(pot, self.used[pot], self.totals.used[pot], 1)

    cdef inline void count(self, int pot, int64_t more) noexcept:
        self.used[pot] += more
        if self.root is not None:
            self.spread(pot, more)
        else:
            self.totals.used[pot] += more
