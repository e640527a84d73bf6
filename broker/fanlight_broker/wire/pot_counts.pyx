# cython: language_level=3
"""Counts of what principals use of the pots that they share: see pot_counts.pxd. core.Shares is made of them."""

cimport cython

cdef int64_t LIMIT_MAX = <int64_t> 1 << 56    # so that a hundred times it is a number of 64 bits


cdef inline int checked(int pot) except -1:
    if not 0 <= pot < POTS:
        raise IndexError(f"pot {pot}; there are {POTS}")
    return pot


@cython.no_gc
cdef class PotTotals:
    """What all principals use, and may."""

    def bound(self, int pot, int64_t limit, int64_t percent, int64_t reserved=0):
        """Apply a limit for all, and the percentage of what the others leave that one may use. reserved: of the limit,
        for what belongs to nobody.
        """
        if limit > LIMIT_MAX:
            raise OverflowError(f"a limit of {limit}; at most {LIMIT_MAX}")
        self.limits[checked(pot)], self.percents[pot], self.reserved[pot] = limit, percent, reserved

    def used_of(self, int pot):
        """What all of them use."""
        return self.used[checked(pot)]

    def has_room(self, int pot, int64_t used, int64_t total, int64_t more):
        """May one that uses so much use more, while all together use `total`?"""
        return self.room(checked(pot), used, total, more)


@cython.no_gc
cdef class PotCounts:
    """What one principal uses. root: it is a joint one."""

    def __cinit__(self, PotTotals totals not None, PotCounts root=None):
        cdef int pot
        self.totals, self.root = totals, root
        self.wider = None if root is None else ()
        for pot in range(POTS):
            self.most[pot] = LIMIT_MAX

    def bound(self, int pot, most):
        """Its quota; None: it has none."""
        self.most[checked(pot)] = LIMIT_MAX if most is None else min(<int64_t> most, LIMIT_MAX)

    def most_of(self, int pot):
        """Its quota, or None."""
        return None if self.most[checked(pot)] == LIMIT_MAX else self.most[pot]

    def __bool__(self):
        """Is anything counted?"""
        cdef int pot
        for pot in range(POTS):
            if self.used[pot]:
                return True
        return False

    def used_of(self, int pot):
        """What it uses."""
        return self.used[checked(pot)]

    def has_room(self, int pot, int64_t more, int64_t leaving):
        """May it use more, when others have given back what they are `leaving`? Of what is counted here."""
        return self.within(checked(pot), more) \
            and self.totals.room(pot, self.used[pot], self.totals.used[pot] - leaving, more)

    def add(self, int pot, int64_t more):
        """Count more, or less, for it and for all."""
        self.count(checked(pot), more)

    cdef void spread(self, int pot, int64_t more) noexcept:
        cdef PotCounts each
        self.root.count(pot, more)
        for each in self.wider:
            each.count(pot, more)

    def join(self, tuple wider not None):
        """Count what a joint one uses for these holders, and no longer for those before."""
        cdef PotCounts each
        cdef int pot
        for pot in range(POTS):
            for each in self.wider:
                each.count(pot, -self.used[pot])
            for each in wider:
                each.count(pot, self.used[pot])
        self.wider = wider

    def adopt(self, int pot, int64_t more):
        """Count for a joint one, and for its other holders, what its principal has counted already."""
        cdef PotCounts each
        self.used[checked(pot)] += more
        for each in self.wider:
            each.count(pot, more)
