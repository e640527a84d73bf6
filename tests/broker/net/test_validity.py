"""Until when a certificate is valid: read as cryptography reads it, and what cannot be read is a ValueError."""

import datetime
import ssl

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.net.validity import BEGIN, END, expires_in

CA = trustme.CA()
MOMENTS = st.datetimes(datetime.datetime(2001, 1, 1), datetime.datetime(2400, 1, 1), timezones=st.just(datetime.UTC))


@given(MOMENTS)
def test_the_time_is_the_one_that_the_certificate_was_made_with(moment: datetime.datetime) -> None:
    moment = moment.replace(microsecond=0)  # a certificate has seconds; from 2050 on in another type
    text = CA.issue_cert("broker.example", not_before=datetime.datetime(2000, 1, 1), not_after=moment)
    assert expires_in(text.cert_chain_pems[0].bytes().decode()) == moment.timestamp()


def test_the_first_of_a_chain_counts() -> None:
    leaf = CA.issue_cert("broker.example", not_after=datetime.datetime(2031, 5, 6, 7, 8, 9, tzinfo=datetime.UTC))
    text = leaf.cert_chain_pems[0].bytes().decode() + CA.cert_pem.bytes().decode()
    assert expires_in(text) == datetime.datetime(2031, 5, 6, 7, 8, 9, tzinfo=datetime.UTC).timestamp()


@pytest.mark.parametrize("text", ["", BEGIN, END + BEGIN])
def test_a_file_without_a_certificate_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="no certificate"):
        expires_in(text)


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_changed_or_short_certificate_is_read_or_is_a_value_error(at: int, octet: int) -> None:
    octets = bytearray(x509.load_pem_x509_certificate(CA.cert_pem.bytes()).public_bytes(serialization.Encoding.DER))
    at %= len(octets)
    for changed in (octets[:at] + bytes([octet]) + octets[at + 1 :], octets[:at]):
        text = ssl.DER_cert_to_PEM_cert(bytes(changed))
        try:
            assert isinstance(expires_in(text), float)
        except ValueError:
            continue
