# When memory that others may still be reading can go: two epochs, as in epoch-based reclamation.
#
# A reader is counted in the epoch it enters. What is retired goes when the epoch has turned twice since; it
# turns when nobody is left in the other one. Counters are in sixteen stripes, a cache line each, so that
# readers do not write to one another's.

from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #include <sched.h>

    #define MATCHERS_STRIPES 16

    typedef struct { int64_t active[2]; char rest[48]; } matchers_stripe;
    typedef struct { void *block; size_t size; } matchers_retired;
    typedef struct { matchers_retired *items; size_t count, room; } matchers_bin;
    typedef struct {
        matchers_stripe stripes[MATCHERS_STRIPES];
        uint32_t now, locked;
        matchers_bin bins[2];    /* retired in this epoch, and in the one before */
        size_t taken;            /* bytes, of what is retired too */
        uint32_t lost;           /* a block could not be noted and was leaked */
    } matchers_epochs;

    static uint32_t matchers_threads;
    static __thread uint32_t matchers_stripe_of_thread;

    static inline uint32_t matchers_mine(void) {
        if (matchers_stripe_of_thread == 0)
            matchers_stripe_of_thread = __atomic_add_fetch(&matchers_threads, 1, __ATOMIC_RELAXED);
        return matchers_stripe_of_thread % MATCHERS_STRIPES;
    }

    static inline uint32_t matchers_enter(matchers_epochs *epochs) {
        matchers_stripe *stripe = &epochs->stripes[matchers_mine()];
        for (;;) {
            uint32_t now = __atomic_load_n(&epochs->now, __ATOMIC_SEQ_CST);
            __atomic_fetch_add(&stripe->active[now], 1, __ATOMIC_SEQ_CST);
            if (__atomic_load_n(&epochs->now, __ATOMIC_SEQ_CST) == now)
                return now;
            __atomic_fetch_sub(&stripe->active[now], 1, __ATOMIC_SEQ_CST);
        }
    }

    static inline void matchers_leave(matchers_epochs *epochs, uint32_t epoch) {
        __atomic_fetch_sub(&epochs->stripes[matchers_mine()].active[epoch], 1, __ATOMIC_SEQ_CST);
    }

    static inline void *matchers_take(matchers_epochs *epochs, size_t size) {
        void *block = malloc(size);
        if (block != NULL)
            __atomic_fetch_add(&epochs->taken, (size + 8 + 15) & ~(size_t) 15, __ATOMIC_RELAXED);
        return block;
    }

    static inline void matchers_give_back(matchers_epochs *epochs, void *block, size_t size) {
        if (block != NULL)
            __atomic_fetch_sub(&epochs->taken, (size + 8 + 15) & ~(size_t) 15, __ATOMIC_RELAXED);
        free(block);
    }

    static inline void matchers_lock(matchers_epochs *epochs) {
        while (__atomic_exchange_n(&epochs->locked, 1, __ATOMIC_ACQUIRE))
            sched_yield();
    }

    static inline void matchers_unlock(matchers_epochs *epochs) {
        __atomic_store_n(&epochs->locked, 0, __ATOMIC_RELEASE);
    }

    static inline void matchers_retire(matchers_epochs *epochs, void *block, size_t size) {
        matchers_bin *bin = &epochs->bins[0];
        if (block == NULL)
            return;
        matchers_lock(epochs);
        if (bin->count == bin->room) {
            size_t room = bin->room ? 2 * bin->room : 256;
            matchers_retired *items = realloc(bin->items, room * sizeof *items);
            if (items == NULL) {
                epochs->lost++;
                matchers_unlock(epochs);
                return;
            }
            bin->items = items;
            bin->room = room;
        }
        bin->items[bin->count].block = block;
        bin->items[bin->count++].size = size;
        matchers_unlock(epochs);
    }

    /* Frees what can go, when `enough` waits or always. Not to be called by who is in an epoch. */
    static inline void matchers_turn(matchers_epochs *epochs, size_t enough) {
        for (;;) {
            int64_t others = 0;
            size_t waiting;
            matchers_bin old;
            if (__atomic_load_n(&epochs->bins[0].count, __ATOMIC_RELAXED) < enough)
                return;
            matchers_lock(epochs);
            for (int i = 0; i < MATCHERS_STRIPES; i++)
                others += __atomic_load_n(&epochs->stripes[i].active[1 - epochs->now], __ATOMIC_SEQ_CST);
            waiting = epochs->bins[0].count;
            if (others == 0) {
                old = epochs->bins[1];
                for (size_t i = 0; i < old.count; i++)
                    matchers_give_back(epochs, old.items[i].block, old.items[i].size);
                old.count = 0;
                epochs->bins[1] = epochs->bins[0];
                epochs->bins[0] = old;
                __atomic_store_n(&epochs->now, 1 - epochs->now, __ATOMIC_SEQ_CST);
            }
            matchers_unlock(epochs);
            if (others == 0 || waiting < 64 * 1024)
                return;
            sched_yield();  /* the list is bounded: wait for the readers */
        }
    }

    static inline void matchers_close(matchers_epochs *epochs) {
        free(epochs->bins[0].items);
        free(epochs->bins[1].items);
    }
    """
    ctypedef struct Epochs "matchers_epochs":
        size_t taken
    uint32_t epochs_enter "matchers_enter" (Epochs* epochs) noexcept nogil
    void epochs_leave "matchers_leave" (Epochs* epochs, uint32_t epoch) noexcept nogil
    void* epochs_take "matchers_take" (Epochs* epochs, size_t size) noexcept nogil
    void epochs_give_back "matchers_give_back" (Epochs* epochs, void* block, size_t size) noexcept nogil
    void epochs_retire "matchers_retire" (Epochs* epochs, void* block, size_t size) noexcept nogil
    void epochs_turn "matchers_turn" (Epochs* epochs, size_t enough) noexcept nogil
    void epochs_close "matchers_close" (Epochs* epochs) noexcept nogil
