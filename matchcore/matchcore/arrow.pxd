# Arrays of Arrow, taken over by the C data interface (https://arrow.apache.org/docs/format/CDataInterface.html): no
# library is needed, and nothing is copied.
#
#     __arrow_c_array__  -> two capsules -> ArrowType, ArrowRows
#     __arrow_c_stream__ -> a capsule    -> ArrowType, ArrowRows, ArrowRows, ...
#
# The structs are moved out of their capsules, and released with the object that has them.

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <stdint.h>

    #ifndef ARROW_C_DATA_INTERFACE
    #define ARROW_C_DATA_INTERFACE

    struct ArrowSchema {
        const char *format;
        const char *name;
        const char *metadata;
        int64_t flags;
        int64_t n_children;
        struct ArrowSchema **children;
        struct ArrowSchema *dictionary;
        void (*release)(struct ArrowSchema *);
        void *private_data;
    };

    struct ArrowArray {
        int64_t length;
        int64_t null_count;
        int64_t offset;
        int64_t n_buffers;
        int64_t n_children;
        const void **buffers;
        struct ArrowArray **children;
        struct ArrowArray *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
    };
    #endif

    #ifndef ARROW_C_STREAM_INTERFACE
    #define ARROW_C_STREAM_INTERFACE

    struct ArrowArrayStream {
        int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
        int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
        const char *(*get_last_error)(struct ArrowArrayStream *);
        void (*release)(struct ArrowArrayStream *);
        void *private_data;
    };
    #endif
    """
    ctypedef struct ArrowSchema "struct ArrowSchema":
        const char* format
        const char* name
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*)

    ctypedef struct ArrowArray "struct ArrowArray":
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*)

    ctypedef struct ArrowArrayStream "struct ArrowArrayStream":
        int (*get_schema)(ArrowArrayStream*, ArrowSchema*)
        int (*get_next)(ArrowArrayStream*, ArrowArray*)
        const char* (*get_last_error)(ArrowArrayStream*)
        void (*release)(ArrowArrayStream*)


cdef class ArrowType:
    cdef ArrowSchema schema


cdef class ArrowRows:
    cdef ArrowArray array


# (ArrowType, [ArrowRows, ...]) of an object that has one of the two methods; None: it has neither. Raises ValueError,
# TypeError of what is not as the interface says.
cdef tuple take_arrow(object source)

# The name of a type, as Arrow's documentation has it, by its format.
cdef str type_name(const char* format)
