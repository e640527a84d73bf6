"""Certificate revocation lists (RFC 5280, 5): OpenSSL checks new connections, and this those that are there.

OpenSSL compares a client's certificate with the list in its handshake only. So that a reload can end connections whose
certificate has been revoked since, the serial numbers in the list are read here: a few lines of DER, and no library.
"""

import base64
import re
from collections.abc import Callable
from typing import Final

from fanlight_broker.net.der import GENERALIZED_TIME, INTEGER, SEQUENCE, UTC_TIME, end_of, open_element

BETWEEN_PAUSES: Final = 500  # serial numbers: about 1 ms

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
        except (ValueError, IndexError):  # binascii.Error is a ValueError
            raise ValueError("a revocation list in it cannot be read") from None
    return frozenset(found)


def _serials(octets: bytes, pause: Callable[[], None] | None) -> list[int]:
    """Of one CertificateList (RFC 5280, 5.1). Raises ValueError, IndexError."""
    at, _ = open_element(octets, 0, SEQUENCE)
    at, end = open_element(octets, at, SEQUENCE)  # tbsCertList
    if octets[at] == INTEGER:  # version
        at = end_of(octets, at)
    at = end_of(octets, end_of(octets, at))  # signature, issuer
    while at < end and octets[at] in (UTC_TIME, GENERALIZED_TIME):  # thisUpdate, nextUpdate
        at = end_of(octets, at)
    found: list[int] = []
    if at < end and octets[at] == SEQUENCE:  # revokedCertificates; else extensions, or nothing
        at, end = open_element(octets, at, SEQUENCE)
        while at < end:
            serial, last = open_element(octets, open_element(octets, at, SEQUENCE)[0], INTEGER)
            found.append(int.from_bytes(octets[serial:last], signed=True))
            at = end_of(octets, at)
            if pause is not None and len(found) % BETWEEN_PAUSES == 0:
                pause()
    return found
