# cython: language_level=3
"""CRC-32C for Python, in both ways: see crc32c.pxd."""

from libc.stdint cimport uint32_t

from fanlight_broker.storage.crc32c cimport extend_crc, extend_crc_by_table


def crc32c(const unsigned char[::1] data not None, uint32_t crc=0):
    """The checksum of `data`, continued from `crc`."""
    return extend_crc(crc, <const char*> &data[0], data.shape[0]) if data.shape[0] else crc


def crc32c_by_table(const unsigned char[::1] data not None, uint32_t crc=0):
    """The same, as a processor without the instruction computes it."""
    return extend_crc_by_table(crc, <const char*> &data[0], data.shape[0]) if data.shape[0] else crc
