# cython: language_level=3, cdivision=True
"""Selects the tier of a filter with wildcards, and moves it; the rule is in tiers.pxd."""

from libc.string cimport memset

from matchcore.buckets cimport (
    ADDED, NO_ROOM, SPLIT, buckets_add, buckets_free, buckets_init, buckets_remove, buckets_tidy,
)
from matchcore.classes cimport (
    CLASSES_AT_MOST, classes_count, classes_free, classes_init, classes_uncount,
)
from matchcore.hashing cimport hash_secret
from matchcore.keys cimport Pattern, pattern_chance, pattern_of
from matchcore.pool cimport column_tokens, pool_add, pool_find, pool_free, pool_init, pool_remove
from matchcore.positions cimport DEPTH, NO_DOLLAR, POSITION_ANY, POSITION_RIGHT, TOKEN_WILD, Parts, parts_of
from matchcore.slots cimport TIER_POOL
from matchcore.table cimport NONE
from matchcore.words cimport words_free, words_init


cdef void tiers_init(Tiers* tiers, Allocator* allocator, Slots* slots) noexcept nogil:
    memset(tiers, 0, sizeof(Tiers))
    tiers.allocator = allocator
    tiers.slots = slots
    tiers.secret = hash_secret()
    words_init(&tiers.words, allocator)
    classes_init(&tiers.classes, allocator, &tiers.words)
    buckets_init(&tiers.buckets, allocator, &tiers.classes, slots)
    pool_init(&tiers.pool, allocator, &tiers.words)
    tiers.small_most = SMALL
    tiers.pool_least = LEAST
    _begin(tiers)


cdef void _begin(Tiers* tiers) noexcept nogil:
    tiers.small = tiers.open = True
    tiers.review_at = min(FIRST, tiers.small_most)
    tiers.waiting = 0


cdef void tiers_free(Tiers* tiers) noexcept nogil:
    pool_free(&tiers.pool)
    buckets_free(&tiers.buckets)
    classes_free(&tiers.classes)
    words_free(&tiers.words)


# ---- literals ----------------------------------------------------------------------------------------

cdef inline int _position(const Parts* parts, uint32_t count, uint32_t i) noexcept nogil:
    """The position of token i, or -1: too deep."""
    if i < parts.prefix:
        return <int> i if i < DEPTH else -1
    if i >= count - parts.suffix:
        i = count - 1 - i
        return <int> (POSITION_RIGHT + i) if i < DEPTH else -1
    return POSITION_ANY


cdef void _uncount(Tiers* tiers, const uint32_t* tokens, uint32_t count, uint32_t done) noexcept nogil:
    cdef Parts parts = parts_of(tokens, count)
    cdef uint32_t i
    cdef int position
    for i in range(done):
        position = _position(&parts, count, i)
        if tokens[i] < TOKEN_WILD and position >= 0:
            classes_uncount(&tiers.classes, tokens[i], position)


cdef int _count(Tiers* tiers, const uint32_t* tokens, uint32_t count) noexcept nogil:
    cdef Parts parts = parts_of(tokens, count)
    cdef uint32_t i
    cdef int position
    for i in range(count):
        position = _position(&parts, count, i)
        if tokens[i] < TOKEN_WILD and position >= 0:
            if classes_count(&tiers.classes, tokens[i], position) < 0:
                _uncount(tiers, tokens, count, i)
                return -1
    return 0


# ---- the rule ----------------------------------------------------------------------------------------

cdef inline bint _is_common(const Tiers* tiers, const Pattern* pattern) noexcept nogil:
    if pattern.prefix + pattern.suffix + 1 < pattern.count:
        return False  # several MANYs: a column of the pool would have to be verified each time
    return pattern_chance(pattern, &tiers.classes) * COMMON > 1


cdef int _to_pool(Tiers* tiers, const Pattern* pattern) noexcept nogil:
    cdef uint32_t column = pool_add(
        &tiers.pool, pattern.slot, pattern.tokens, pattern.count, pattern.flags & NO_DOLLAR
    )
    if column == NONE:
        return -1
    tiers.slots.entries[pattern.slot].tier = TIER_POOL
    return 0


cdef int _to_buckets(Tiers* tiers, Pattern* pattern) noexcept nogil:
    cdef uint32_t most = CLASSES_AT_MOST
    cdef int status
    if tiers.classes.live >= CLASSES_OF_ONE_WORD:
        if pattern_chance(pattern, &tiers.classes) * COMMON_IN_A_NEW_CLASS > 1:
            most = CLASSES_OF_ONE_WORD
    status = buckets_add(&tiers.buckets, pattern, 1, most)
    buckets_tidy(&tiers.buckets)
    return status


cdef int tiers_add(
    Tiers* tiers, uint32_t slot, const uint32_t* tokens, uint32_t count, uint32_t flags
) noexcept nogil:
    cdef Pattern pattern
    cdef int status = NO_ROOM
    if _count(tiers, tokens, count) < 0:
        return -1
    pattern_of(&pattern, &tiers.classes, slot, tokens, count, flags)
    if not tiers.small:
        if not _is_common(tiers, &pattern):
            status = _to_buckets(tiers, &pattern)
        elif not tiers.open:
            status = _to_buckets(tiers, &pattern)
            if status == ADDED:
                tiers.waiting += 1
                tiers.open = tiers.waiting >= tiers.pool_least
    if status == NO_ROOM:
        status = _to_pool(tiers, &pattern)
    if status < 0:
        _uncount(tiers, tokens, count, count)
        return -1
    tiers.wildcards += 1
    if tiers.wildcards >= tiers.review_at:
        _review(tiers)
    return 0


cdef void tiers_remove(
    Tiers* tiers, uint32_t slot, const uint32_t* tokens, uint32_t count, uint32_t flags
) noexcept nogil:
    cdef Pattern pattern
    cdef uint32_t tier = tiers.slots.entries[slot].tier
    if tier == TIER_POOL:
        pool_remove(&tiers.pool, pool_find(&tiers.pool, slot))
    else:
        pattern_of(&pattern, &tiers.classes, slot, tokens, count, flags)
        buckets_remove(&tiers.buckets, &pattern, tier)
        buckets_tidy(&tiers.buckets)
    _uncount(tiers, tokens, count, count)
    tiers.wildcards -= 1
    if tiers.wildcards == 0:
        _begin(tiers)


# ---- moving ------------------------------------------------------------------------------------------

cdef void _pattern_of_column(const Tiers* tiers, Pattern* pattern, uint32_t c) noexcept nogil:
    pattern_of(
        pattern, &tiers.classes, tiers.pool.columns[c].slot, column_tokens(&tiers.pool, &tiers.pool.columns[c]),
        tiers.pool.columns[c].count, tiers.pool.columns[c].flags & NO_DOLLAR,
    )


cdef void _review(Tiers* tiers) noexcept nogil:
    """Weighs the pool's filters again. What finds no memory stays where it is."""
    cdef Pattern pattern
    cdef uint32_t common = 0
    cdef uint32_t lonely = 0
    cdef uint32_t alone = min(tiers.wildcards // FEW, <uint32_t> SPLIT)
    cdef uint32_t c
    cdef uint32_t last = tiers.pool.count
    cdef bint is_common
    tiers.review_at = tiers.wildcards * 2 if tiers.wildcards < 0x7FFFFFFF else 0xFFFFFFFF
    tiers.waiting = 0
    for c in range(last):
        if tiers.pool.columns[c].tokens != NONE:
            _pattern_of_column(tiers, &pattern, c)
            common += _is_common(tiers, &pattern)
            lonely += pattern.literals != 0 and pattern.counts[0] <= alone
    if tiers.small and tiers.wildcards < tiers.small_most and lonely * 4 < tiers.wildcards * 3:
        tiers.review_at = min(tiers.review_at, tiers.small_most)
        return
    tiers.open = common >= tiers.pool_least
    if tiers.open and tiers.wildcards >= SMALL and (tiers.wildcards - common) * FEW_RARE < tiers.wildcards:
        return
    tiers.small = False
    for c in range(last):
        if c >= tiers.pool.count:
            break  # it became empty, and began anew
        if tiers.pool.columns[c].tokens == NONE:
            continue
        _pattern_of_column(tiers, &pattern, c)
        is_common = _is_common(tiers, &pattern)
        if is_common and tiers.open:
            continue
        if _to_buckets(tiers, &pattern) == ADDED:
            pool_remove(&tiers.pool, c)
            if is_common:
                tiers.waiting += 1
