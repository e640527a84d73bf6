"""Revocation lists: the serial numbers in them, beside a library that reads them too."""

import base64
import contextlib
import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.net.revocations import revoked_in

KEY = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "CA")])
THEN = datetime.datetime(2020, 1, 1)


def crl(serials: list[int], *, reasons: bool = False, numbered: bool = False) -> str:
    builder = x509.CertificateRevocationListBuilder(NAME, THEN, THEN + datetime.timedelta(days=36_500))
    for serial in serials:
        row = x509.RevokedCertificateBuilder(serial, THEN)
        if reasons:
            row = row.add_extension(x509.CRLReason(x509.ReasonFlags.key_compromise), critical=False)
        builder = builder.add_revoked_certificate(row.build())
    if numbered:
        builder = builder.add_extension(x509.CRLNumber(7), critical=False)
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.PEM).decode()


WHOLE = base64.b64decode("".join(crl([1, 2, 3]).split("\n")[1:-2]))


@settings(max_examples=50)
@given(st.lists(st.integers(1, (1 << 159) - 1), max_size=40), st.booleans(), st.booleans())
def test_every_serial_number_in_a_list_is_found(serials: list[int], reasons: bool, numbered: bool) -> None:
    assert revoked_in(crl(serials, reasons=reasons, numbered=numbered)) == set(serials)


def test_a_file_may_have_several_lists_and_text_between_them() -> None:
    assert revoked_in(f"one\n{crl([1, 2])}\ntwo\n{crl([300])}") == {1, 2, 300}


@given(st.integers(0, 150), st.none() | st.integers(0, 255))
def test_a_list_that_is_cut_or_changed_fails_and_does_nothing_else(at: int, octet: int | None) -> None:
    octets = bytearray(WHOLE)
    if octet is None:
        del octets[at:]
    else:
        octets[at] = octet
    text = f"-----BEGIN X509 CRL-----\n{base64.b64encode(octets).decode()}\n-----END X509 CRL-----"
    with contextlib.suppress(ValueError):
        assert isinstance(revoked_in(text), frozenset)


def test_a_file_without_a_list_is_refused() -> None:
    for text in ("", "-----BEGIN CERTIFICATE-----", "-----BEGIN X509 CRL-----\n!\n-----END X509 CRL-----"):
        with pytest.raises(ValueError, match="revocation list"):
            revoked_in(text)


def test_a_long_list_is_read_with_pauses() -> None:
    pauses: list[None] = []
    assert len(revoked_in(crl(list(range(1, 1_201))), lambda: pauses.append(None))) == 1_200
    assert len(pauses) == 2
