# A rule, for whoever inserted or found it: made when it is asked for, so that an index need not keep one for each.

from libc.stdint cimport uint32_t


cdef class Rule:
    cdef:
        object table           # the RuleTable that made it
        readonly object result
        readonly object name
        object where           # the selector: packed text; the tree once it was asked for
        tuple filter           # (topic, syntax); None: any topic
        double order
        readonly uint32_t number
        uint32_t slot
