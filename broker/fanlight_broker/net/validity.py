"""Until when a certificate is valid (RFC 5280, 4.1.2.5).

Python's ssl shows the certificates of peers and not our own, so the time is read here from the file.
"""

import ssl
from datetime import UTC, datetime

from fanlight_broker.net.der import EXPLICIT_0, GENERALIZED_TIME, SEQUENCE, UTC_TIME, end_of, open_element

BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def expires_in(text: str) -> float:
    """The time, in seconds since 1970, at which the first certificate of a PEM file expires.

    Raises ValueError if there is none, or it cannot be read.
    """
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise ValueError("there is no certificate in it, in PEM form")
    octets = ssl.PEM_cert_to_DER_cert(text[begin : end + len(END)])
    try:
        at, _ = open_element(octets, 0, SEQUENCE)
        at, _ = open_element(octets, at, SEQUENCE)  # tbsCertificate
        if octets[at] == EXPLICIT_0:  # version
            at = end_of(octets, at)
        for _ in ("serialNumber", "signature", "issuer"):
            at = end_of(octets, at)
        at, _ = open_element(octets, at, SEQUENCE)  # validity
        at = end_of(octets, at)  # notBefore
        kind = octets[at]
        at, last = open_element(octets, at, kind)
        return _time(kind, octets[at:last].decode("ascii"))
    except IndexError:
        raise ValueError("the certificate in it cannot be read") from None


def _time(kind: int, text: str) -> float:
    """Raises ValueError."""
    if kind not in (UTC_TIME, GENERALIZED_TIME):
        raise ValueError(f"a time of tag {kind:#x}")
    if kind == UTC_TIME:  # 00 to 49 are of this century: RFC 5280, 4.1.2.5.1
        text = ("20" if text[:2] < "50" else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
