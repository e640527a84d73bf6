"""The keys that tokens are checked with, from one file: PEM, a JWKS (RFC 7517), or a secret.

    -----BEGIN PUBLIC KEY-----      one or several, certificates too: RS256, ES256 or EdDSA, as the key is
    {"keys": [{"kty": ...}]}        as identity providers publish it; keys for other purposes are left out
    anything else                   a secret for HS256, of 32 bytes at least (RFC 7518, 3.2)
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fanlight_broker.core.errors import FanlightError

FILE_BYTES_MAX: Final = 1024 * 1024
KEYS_MAX: Final = 100
SECRET_BYTES_MIN: Final = 32
RSA_BITS_MIN: Final = 2048
RSA_BITS_MAX: Final = 8192  # a check of one takes 1 ms
ALGORITHMS: Final = ("HS256", "RS256", "ES256", "EdDSA")
CURVES: Final = {"P-256": "ES256", "Ed25519": "EdDSA"}

_PEM: Final = re.compile(rb"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----", re.DOTALL)


class TokenKeysError(FanlightError):
    """A file of keys cannot be used. The text names it, and shows nothing of its content."""


@dataclass(frozen=True, slots=True)
class TokenKey:
    kid: str | None
    algorithm: str
    fingerprint: str = field(repr=False)
    key: Any = field(repr=False, compare=False)  # bytes, or a public key of cryptography


def read_keys(path: Path) -> Sequence[TokenKey]:
    """Raises TokenKeysError."""
    try:
        import cryptography  # noqa: F401
        import jwt  # noqa: F401
    except ImportError:
        text = "tokens need PyJWT and cryptography: install the extra [jwt], pip install './broker[jwt]' in a checkout"
        raise TokenKeysError(f"{path}: {text}") from None
    try:
        with path.open("rb") as file:
            octets = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise TokenKeysError(f"{path}: cannot be read: {error.strerror}") from None
    if len(octets) > FILE_BYTES_MAX:
        raise TokenKeysError(f"{path}: is longer than {FILE_BYTES_MAX} bytes")
    if b"-----BEGIN " in octets:
        keys = _of_pem(octets, path)
    elif octets.lstrip().startswith(b"{"):
        keys = _of_jwks(octets, path)
    else:
        keys = [_secret(octets.strip(), None, path)]
    if len(keys) > KEYS_MAX:
        raise TokenKeysError(f"{path}: more than {KEYS_MAX} keys")
    kids = [(key.kid, key.algorithm) for key in keys]
    if len(set(kids)) < len(kids):
        raise TokenKeysError(f"{path}: several keys for one algorithm need a kid each; a JWKS file has room for it")
    return keys


def _secret(octets: bytes, kid: str | None, path: Path) -> TokenKey:
    if len(octets) < SECRET_BYTES_MIN:
        raise TokenKeysError(f"{path}: a secret of {len(octets)} bytes; {SECRET_BYTES_MIN} at least, random ones")
    return TokenKey(kid, "HS256", hashlib.sha256(b"secret" + octets).hexdigest(), octets)


def _of_pem(octets: bytes, path: Path) -> list[TokenKey]:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    keys = []
    for block in _PEM.finditer(octets):
        kind = block[1].decode()
        if "PRIVATE" in kind:
            raise TokenKeysError(f"{path}: has a private key; the broker needs the public one alone")
        try:
            if kind == "CERTIFICATE":
                key: Any = load_pem_x509_certificate(block[0]).public_key()
            else:
                key = load_pem_public_key(block[0])
        except (ValueError, UnsupportedAlgorithm):
            raise TokenKeysError(f"{path}: the {kind.lower()} in it cannot be read") from None
        keys.append(_public(key, None, path))
    if not keys:
        raise TokenKeysError(f"{path}: no whole key in it, PEM")
    return keys


def _of_jwks(octets: bytes, path: Path) -> list[TokenKey]:
    import jwt

    try:
        table = json.loads(octets)
    except (ValueError, RecursionError):
        raise TokenKeysError(f"{path}: is not JSON") from None
    rows = table.get("keys", [table] if "kty" in table else None)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise TokenKeysError(f'{path}: is no JWKS: {{"keys": [{{"kty": ...}}]}}')
    keys = []
    for number, row in enumerate(rows, 1):
        algorithm = _algorithm_of(row)
        if algorithm is None:
            continue
        kid = row.get("kid")
        try:
            key = jwt.PyJWK(row, algorithm=algorithm).key
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            raise TokenKeysError(f"{path}: key {number} cannot be read") from None
        kid = kid if isinstance(kid, str) else None
        keys.append(_secret(key, kid, path) if algorithm == "HS256" else _public(key, kid, path))
    if not keys:
        raise TokenKeysError(f"{path}: no key in it for {', '.join(ALGORITHMS)}")
    return keys


def _algorithm_of(row: Mapping[str, Any]) -> str | None:
    """What a JWK is for; None if that is nothing we take."""
    found = {"oct": "HS256", "RSA": "RS256"}.get(str(row.get("kty"))) or CURVES.get(str(row.get("crv")))
    if found is None or row.get("use", "sig") != "sig" or row.get("alg", found) != found:
        return None
    return found


def _public(key: Any, kid: str | None, path: Path) -> TokenKey:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    if isinstance(key, rsa.RSAPublicKey):
        if not RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX:
            raise TokenKeysError(f"{path}: an RSA key of {key.key_size} bits; {RSA_BITS_MIN} to {RSA_BITS_MAX}")
        algorithm = "RS256"
    elif isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        algorithm = "ES256"
    elif isinstance(key, ed25519.Ed25519PublicKey):
        algorithm = "EdDSA"
    elif hasattr(key, "private_bytes"):
        raise TokenKeysError(f"{path}: has a private key; the broker needs the public one alone")
    else:
        raise TokenKeysError(f"{path}: a key of a kind that is not taken; RSA, P-256 or Ed25519")
    octets = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return TokenKey(kid, algorithm, hashlib.sha256(octets).hexdigest(), key)
