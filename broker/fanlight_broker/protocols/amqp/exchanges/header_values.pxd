# Values of headers as keys: see header_values.pyx.

cdef bytes canonical_octets(const unsigned char* at, Py_ssize_t size)
