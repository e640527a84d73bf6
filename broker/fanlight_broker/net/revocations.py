"""Certificate revocation lists (RFC 5280, 5): OpenSSL checks new connections, and this those that are there.

OpenSSL compares a client's certificate with the list in its handshake only. So that a reload can end connections whose
certificate has been revoked since, the serial numbers in the list are read here: 30 lines of DER, and no library.
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Final

SEQUENCE: Final = 0x30
INTEGER: Final = 0x02
BETWEEN_PAUSES: Final = 500  # serial numbers: about 1 ms
UTC_TIME, GENERALIZED_TIME = 0x17, 0x18

_PEM: Final = re.compile(r"-----BEGIN X509 CRL-----(.+?)-----END X509 CRL-----", re.DOTALL)


def revoked_in(text: str, pause: Callable[[], None] | None = None) -> frozenset[int]:
    """The serial numbers in the lists of a PEM file. Raises ValueError if a list cannot be read, or none is there.

    pause: called now and then
    """
    found: set[int] = set()
    lists = _PEM.findall(text)
    if not lists:
        raise ValueError("there is no revocation list in it, in PEM form ('-----BEGIN X509 CRL-----')")
    for each in lists:
        try:
            found.update(_serials(base64.b64decode("".join(each.split()), validate=True), pause))
        except (binascii.Error, IndexError):
            raise ValueError("a revocation list in it cannot be read") from None
    return frozenset(found)


def _serials(octets: bytes, pause: Callable[[], None] | None) -> list[int]:
    """Of one CertificateList (RFC 5280, 5.1). Raises ValueError, IndexError."""
    at, _ = _open(octets, 0, SEQUENCE)
    at, end = _open(octets, at, SEQUENCE)  # tbsCertList
    if octets[at] == INTEGER:  # version
        at = _end(octets, at)
    at = _end(octets, _end(octets, at))  # signature, issuer
    while at < end and octets[at] in (UTC_TIME, GENERALIZED_TIME):  # thisUpdate, nextUpdate
        at = _end(octets, at)
    found: list[int] = []
    if at < end and octets[at] == SEQUENCE:  # revokedCertificates; else extensions, or nothing
        at, end = _open(octets, at, SEQUENCE)
        while at < end:
            serial, last = _open(octets, _open(octets, at, SEQUENCE)[0], INTEGER)
            found.append(int.from_bytes(octets[serial:last], signed=True))
            at = _end(octets, at)
            if pause is not None and len(found) % BETWEEN_PAUSES == 0:
                pause()
    return found


def _open(octets: bytes, at: int, tag: int) -> tuple[int, int]:
    """Where the content of an element begins and ends. Raises ValueError, IndexError."""
    if octets[at] != tag:
        raise ValueError("a revocation list in it cannot be read")
    size, at = octets[at + 1], at + 2
    if size >= 0x80:
        count = size & 0x7F
        if not 0 < count <= 4:
            raise ValueError("a revocation list in it cannot be read")
        size, at = int.from_bytes(octets[at : at + count]), at + count
    if at + size > len(octets):
        raise ValueError("a revocation list in it cannot be read")
    return at, at + size


def _end(octets: bytes, at: int) -> int:
    return _open(octets, at, octets[at])[1]
