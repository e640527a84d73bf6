# Which tier a filter with wildcards lives in, and when it moves. (One without is in the exact tier: slots.pxd.)
#
#     fewer than FIRST filters        all in the pool: its rows are short, and nothing beats anding them
#     fewer than SMALL                too, unless most have a literal that only 1 in FEW of them has: those the
#                                     buckets find with a probe or two
#     from then on: the chance that a filter matches, as if the words of a topic were drawn as those of filters are
#         chance > COMMON             the pool: a column costs the same however often it matches
#         several MANYs, or rarer     the buckets; but the pool, as long as those are fewer than 1 in FEW_RARE
#         a new class beyond 64       the pool, if the chance is not too small: one bitmap word is to be enough
#     fewer than LEAST for the pool   the buckets for all: a second set of rows is not worth so few columns
#     no room in the buckets          the pool
#
# The chance is the product, over the literals, of how many filters have this word there by how many have any
# there. Counted by position: by word alone, fifty thousand filters over sixteen words at eight positions all look
# common. When the filters with wildcards have doubled, those in the pool are weighed again and move out if
# they have become rare. Nothing moves into the pool: when LEAST common filters have gone to buckets it opens for
# those that come.
#
# What a match costs at most, whatever filters and topic an adversary chooses (n words, up to max_words):
#
#     rows      of 49 positions and n words anywhere, each the and of at most 8 words (CLASSES_AT_MOST)
#     probes    one for a class that is alive, at most 512; for one with the position any, one for each distinct word
#     records   up to 64 a bucket that cannot be split, 8 of another; of each up to 31 literals, or the tokens
#     pool      the blocks of the rarest row, 512 columns each, and at most 50 rows and n anywhere anded to each
#     tokens    of a filter with several MANYs: an AND of 128 bits each (verify.pyx); beyond 128 words tokens x n steps
#     ids       sorted by digits: four passes over those found, at most (ascending.pxd)
#
# So no more than filters x tokens x n steps, as by a plain scan, and no set makes it exponential. Collisions of hashes
# would make a probe long; the secrets are drawn at random in each process (hashing.pxd).

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.buckets cimport Buckets
from matchcore.classes cimport Classes
from matchcore.pool cimport Pool
from matchcore.slots cimport Slots
from matchcore.words cimport Words

cdef enum:
    FIRST = 128
    FEW = 64
    SMALL = 1536
    LEAST = 256
    FEW_RARE = 16
    COMMON = 512               # one in 512
    COMMON_IN_A_NEW_CLASS = 8192
    CLASSES_OF_ONE_WORD = 64


cdef struct Tiers:
    Allocator* allocator
    const uint64_t* secret  # under which topics and their words are hashed
    Words words
    Classes classes
    Buckets buckets
    Pool pool
    Slots* slots
    uint32_t wildcards     # filters here
    uint32_t review_at     # review at this number of filters
    bint small             # all go to the pool: few, or nearly all common
    bint open              # common filters go to the pool
    uint32_t waiting       # common filters that went to buckets since the last review
    uint32_t small_most    # SMALL and LEAST, or what a test says
    uint32_t pool_least


cdef void tiers_init(Tiers* tiers, Allocator* allocator, Slots* slots) noexcept nogil
cdef void tiers_free(Tiers* tiers) noexcept nogil

# A slot's canonical filter, as word ids and wildcards; `flags` is NO_DOLLAR or 0. -1: no memory, and nothing
# has changed. The references to its words are the caller's.
cdef int tiers_add(
    Tiers* tiers, uint32_t slot, const uint32_t* tokens, uint32_t count, uint32_t flags
) noexcept nogil
cdef void tiers_remove(
    Tiers* tiers, uint32_t slot, const uint32_t* tokens, uint32_t count, uint32_t flags
) noexcept nogil
