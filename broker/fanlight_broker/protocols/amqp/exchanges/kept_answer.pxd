# An answer of the exchanges that is kept, and says so: Destinations is one, and the lane's routes of an exchange are.

cdef class KeptAnswer:
    cdef public bint valid            # False: a change of bindings may have made it wrong
