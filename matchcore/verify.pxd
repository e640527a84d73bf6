# Does a column take a topic? Word by word, for the columns its rows do not decide.

from libc.stdint cimport uint32_t

from matchcore.pool cimport Column

# `ids`: the topic's word ids, OTHER for words no filter names. Everything but the `$` rule.
cdef bint column_takes(const Column* column, const uint32_t* ids, uint32_t count) noexcept nogil
