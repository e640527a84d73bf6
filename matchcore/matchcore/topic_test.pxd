# Whether a text, read as the words of a topic, is on a filter: what the test MATCHES asks of an attribute.

from libc.stdint cimport uint8_t, uint64_t

# The text is split at the separator of the filter's syntax, and is not checked. Linear in the text for each word of the
# filter; adds to `steps` the words compared.
cdef bint text_is_on(
    const uint8_t* text, size_t size, const uint8_t* filter, size_t filter_size, bint is_mqtt, uint64_t* steps
) noexcept nogil
