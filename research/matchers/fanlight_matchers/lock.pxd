# A lock for several readers or one writer. A waiting writer holds new readers back, as Go's RWMutex does, which the
# programs of Treat and of NATS use; where the C library cannot do that, readers go first.

cdef extern from *:
    """
    #include <pthread.h>
    #include <stdlib.h>

    static inline void *matchers_lock_new(void) {
        pthread_rwlock_t *lock = (pthread_rwlock_t *) malloc(sizeof(pthread_rwlock_t));
        pthread_rwlockattr_t attributes;
        if (lock == NULL)
            return NULL;
        pthread_rwlockattr_init(&attributes);
    #if defined(__GLIBC__)
        pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    #endif
        if (pthread_rwlock_init(lock, &attributes) != 0) {
            free(lock);
            lock = NULL;
        }
        pthread_rwlockattr_destroy(&attributes);
        return lock;
    }

    static inline void matchers_lock_free(void *lock) {
        if (lock != NULL)
            pthread_rwlock_destroy((pthread_rwlock_t *) lock);
        free(lock);
    }

    static inline void matchers_lock_shared(void *lock) { pthread_rwlock_rdlock((pthread_rwlock_t *) lock); }
    static inline void matchers_lock_alone(void *lock) { pthread_rwlock_wrlock((pthread_rwlock_t *) lock); }
    static inline void matchers_unlock_lock(void *lock) { pthread_rwlock_unlock((pthread_rwlock_t *) lock); }
    """
    void* lock_new "matchers_lock_new" () noexcept nogil            # NULL: no memory
    void lock_free "matchers_lock_free" (void* lock) noexcept nogil
    void lock_shared "matchers_lock_shared" (void* lock) noexcept nogil
    void lock_alone "matchers_lock_alone" (void* lock) noexcept nogil
    void lock_release "matchers_unlock_lock" (void* lock) noexcept nogil
