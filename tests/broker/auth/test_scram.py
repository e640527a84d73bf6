"""SCRAM-SHA-256: the vectors of RFC 7677, users that do not exist, and messages that are not in order."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.auth.scram import ScramServer, decoy
from fanlight_broker.auth.scram_keys import ScramKeys, saslprep
from fanlight_broker.core.errors import AuthenticationFailed
from tests.broker.auth.scram_client import ScramClient

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVERS = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
KEYS = ScramKeys.of("pencil", salt=base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), iterations=4096)
FIRST = f"r={NONCE}{SERVERS},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
PROOF = b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
FINAL = f"c=biws,r={NONCE}{SERVERS},p=".encode() + PROOF


def server() -> ScramServer:
    return ScramServer(lambda _: KEYS, lambda: SERVERS)


def test_the_example_of_rfc_7677() -> None:
    one = server()
    assert one.first(f"n,,n=user,r={NONCE}".encode()) == FIRST
    assert one.user == "user"
    assert one.final(FINAL)
    assert one.done() == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_client_of_these_tests_knows_the_example_too() -> None:
    client = ScramClient("user", "pencil", NONCE)
    assert client.first() == f"n,,n=user,r={NONCE}".encode()
    assert client.final(FIRST) == FINAL
    assert client.knows_server(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize("header", ["n,,", "y,,", "n,a=us=2Cer=3D,"])
def test_a_client_without_channel_binding_and_with_a_name_that_needs_escapes(header: str) -> None:
    one, client = server(), ScramClient("us,er=", "pencil", header=header)
    final = client.final(one.first(client.first()))
    assert one.user == "us,er="
    assert one.final(final)
    assert client.knows_server(one.done())


def test_a_wrong_password_and_a_changed_proof_are_refused() -> None:
    one, client = server(), ScramClient("user", "pen")
    assert not one.final(client.final(one.first(client.first())))
    for proof in (PROOF[:-4], base64.b64encode(bytes(32)), PROOF.replace(b"d", b"e", 1)):
        one = server()
        one.first(f"n,,n=user,r={NONCE}".encode())
        assert not one.final(FINAL.replace(PROOF, proof))


@pytest.mark.parametrize(
    "first",
    [b"", b"n=user,r=12345678", b"p=tls-unique,,n=user,r=12345678", b"n,a=other,n=user,r=12345678",
     b"n,,m=x,n=user,r=12345678", b"n,,n=,r=12345678", b"n,,n=us=er,r=12345678", b"n,,n=user,r=short",
     b"n,,n=\xff,r=12345678", b"n,,n=user", b"n,,n=user,r=1234\x00678", b"n,,n=user,r=12345678" + b",x" * 2500],
)
def test_a_first_message_that_is_not_in_order_ends_it(first: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        server().first(first)


@pytest.mark.parametrize(
    "final",
    [b"", FINAL.replace(b"biws", b"eSws"), FINAL.replace(NONCE.encode(), b"anotherNonceOfClient"),
     FINAL.replace(b",p=", b",q="), FINAL + b",x=y", FINAL.replace(b"c=biws,", b"")],
)
def test_a_final_message_that_is_not_of_this_exchange_ends_it(final: bytes) -> None:
    one = server()
    one.first(f"n,,n=user,r={NONCE}".encode())
    with pytest.raises(AuthenticationFailed):
        one.final(final)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_no_message_does_anything_but_fail(first: bytes, final: bytes) -> None:
    one = server()
    try:
        one.first(first)
        assert not one.final(final)
    except AuthenticationFailed:
        pass


def test_the_keys_of_an_unknown_user_are_always_the_same_and_look_like_others() -> None:
    one, again, other = decoy(b"k" * 32, "eve", 4096), decoy(b"k" * 32, "eve", 4096), decoy(b"k" * 32, "eva", 4096)
    assert one == again
    assert one.salt != other.salt
    assert one != decoy(b"l" * 32, "eve", 4096)
    assert (len(one.salt), len(one.stored_key)) == (len(KEYS.salt), len(KEYS.stored_key))


def test_keys_are_written_and_read_and_not_shown() -> None:
    assert ScramKeys.parse(KEYS.text()) == KEYS
    assert "=" not in repr(KEYS).replace("iterations=", "")


# RFC 4013, 3
@pytest.mark.parametrize(
    ("text", "prepared"),
    [("I\u00adX", "IX"), ("user", "user"), ("USER", "USER"), ("\u00aa", "a"), ("\u2168", "IX"), ("\u0007", None),
     ("\u0627\u0031", None)],
)
def test_saslprep_by_the_examples_of_its_rfc(text: str, prepared: str | None) -> None:
    if prepared is None:
        with pytest.raises(ValueError, match=r"SASLprep|directions"):
            saslprep(text)
    else:
        assert saslprep(text) == prepared
