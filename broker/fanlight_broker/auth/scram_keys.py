"""What a server keeps of a password for SCRAM-SHA-256 (RFC 5802, 3; RFC 7677).

    SaltedPassword = PBKDF2(HMAC-SHA-256, password, salt, iterations)
    StoredKey      = SHA-256(HMAC(SaltedPassword, "Client Key"))      checks the client's proof
    ServerKey      = HMAC(SaltedPassword, "Server Key")               proves the server to the client

Neither lets anybody log in. The text form is that of RFC 5803, as PostgreSQL writes it:

    SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>         salt and keys in base64
"""

import base64
import hashlib
import hmac
import os
import re
from dataclasses import dataclass, field
from typing import Final

ITERATIONS: Final = 20_000  # RFC 7677 wants 4,096 at least. 10 ms of a client's core; the broker computes none of it
ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 1_000_000  # a client would refuse to compute more
SALT_BYTES: Final = 16

_TEXT: Final = re.compile(
    r"SCRAM-SHA-256\$(\d{1,7}):([A-Za-z0-9+/=]{12,128})\$([A-Za-z0-9+/]{43}=):([A-Za-z0-9+/]{43}=)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class ScramKeys:
    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "ScramKeys":
        """Raises ValueError, which shows nothing of the keys."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError("is not SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey")
        if not ITERATIONS_MIN <= int(match[1]) <= ITERATIONS_MAX:
            raise ValueError(f"{ITERATIONS_MIN} to {ITERATIONS_MAX} iterations")
        try:
            salt, stored, server = (base64.b64decode(match[part], validate=True) for part in (2, 3, 4))
        except ValueError:
            raise ValueError("its salt is not base64") from None
        return cls(int(match[1]), salt, stored, server)

    @classmethod
    def of(cls, password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS) -> "ScramKeys":
        """The keys of a password. Raises ValueError if SASLprep does not allow it."""
        salt = os.urandom(SALT_BYTES) if salt is None else salt
        salted = hashlib.pbkdf2_hmac("sha256", saslprep(password).encode(), salt, iterations)
        stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
        return cls(iterations, salt, stored, hmac.digest(salted, b"Server Key", "sha256"))

    def text(self) -> str:
        """The text form, for files."""
        salt, stored, server = (
            base64.b64encode(each).decode() for each in (self.salt, self.stored_key, self.server_key)
        )
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"


def saslprep(text: str) -> str:
    """A text as SASLprep prepares it (RFC 4013). Raises ValueError if it is not allowed."""
    if text.isascii() and text.isprintable():
        return text
    import stringprep  # its tables are for those who need them
    import unicodedata

    prohibited = (
        stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4,
        stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8,
        stringprep.in_table_c9,
    )
    mapped = "".join(
        " " if stringprep.in_table_c12(each) else each for each in text if not stringprep.in_table_b1(each)
    )
    found = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    for each in found:
        if any(table(each) for table in prohibited):
            raise ValueError("has a character that SASLprep (RFC 4013) does not allow")
        if stringprep.in_table_a1(each):
            raise ValueError("has a character that Unicode 3.2 does not have (RFC 4013)")
    right = [stringprep.in_table_d1(each) for each in found]
    if any(right) and (any(map(stringprep.in_table_d2, found)) or not (right[0] and right[-1])):
        raise ValueError("mixes directions of writing (RFC 3454, 6)")
    return found
