"""How passwords are hashed: argon2id, at the costs that OWASP recommends for servers.

19 MiB and two passes take some 40 ms of a core (measured; the default of 64 MiB and three passes takes 220 ms, which a
broker that routes messages on that core cannot spend on every guess). A file may hold hashes of other costs: each
hash contains its own.

Hashes that mosquitto_passwd wrote are checked as well: `$7$` (PBKDF2 with SHA-512, and a number of iterations) and
`$6$` (one SHA-512); and those of RabbitMQ's file of definitions, as `$rabbitmq$sha256$` or `$rabbitmq$sha512$` and the
`password_hash`, which is 4 bytes of salt and one SHA-2 of salt and password. They are much faster to guess, so they are
only taken over, and the next `passwd` of the user replaces them. A check of one takes as long as one of argon2: a fast
answer would show which users were taken over.
"""

import base64
import binascii
import hashlib
import hmac
import re
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # imported for the first password: a broker without passwords does not need it
    from argon2 import PasswordHasher

MEMORY_KIB_MAX: Final = 1024 * 1024  # with more, each login could use all memory of the machine
ITERATIONS_MAX: Final = 1_000_000  # of PBKDF2, about half a second; mosquitto_passwd makes 101 to 1,000

_ARGON2: Final = re.compile(
    r"\$argon2(?:id|i|d)\$v=19\$m=(\d{1,9}),t=(\d{1,9}),p=(\d{1,9})"
    r"\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{16,}",
    re.ASCII,
)
_MOSQUITTO: Final = re.compile(r"\$(?:6|7\$([1-9]\d{0,8}))\$([A-Za-z0-9+/=]{4,256})\$([A-Za-z0-9+/=]{88})", re.ASCII)
_RABBITMQ: Final = re.compile(r"\$rabbitmq\$sha(256|512)\$([A-Za-z0-9+/=]{48,92})", re.ASCII)
RABBITMQ_SALT: Final = 4  # bytes


class HashingError(Exception):
    """argon2 failed, most likely for lack of memory. Nothing is known of the password."""


@cache
def hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


def why_not_a_hash(text: str) -> str:
    """Why a text is no hash that passwords can be checked against; "" if it is one."""
    if (match := _MOSQUITTO.fullmatch(text)) is not None:
        if int(match[1] or 1) > ITERATIONS_MAX:
            return f"a hash of more than {ITERATIONS_MAX} iterations"
        return "" if decoded(match[2]) and len(decoded(match[3])) == 64 else "no whole hash"
    if (match := _RABBITMQ.fullmatch(text)) is not None:
        return "" if len(decoded(match[2])) == RABBITMQ_SALT + int(match[1]) // 8 else "no whole hash"
    match = _ARGON2.fullmatch(text)
    if match is None:
        return "no argon2 hash"
    if not 8 <= int(match[1]) <= MEMORY_KIB_MAX or int(match[2]) < 1 or int(match[3]) < 1:
        return f"argon2 costs out of range, m is 8 to {MEMORY_KIB_MAX} KiB"
    return ""


def matches(hash: str, password: str) -> bool:
    """Whether `password` is the one of `hash`. Raises HashingError."""
    from argon2.exceptions import Argon2Error, VerifyMismatchError

    octets = password.encode(errors="surrogatepass")
    try:
        if (match := _MOSQUITTO.fullmatch(hash)) is not None:
            hasher().hash(octets)
            return _mosquitto(match, octets)
        if (match := _RABBITMQ.fullmatch(hash)) is not None:
            hasher().hash(octets)
            return _rabbitmq(match, octets)
        return hasher().verify(hash, octets)
    except VerifyMismatchError:
        return False
    except Argon2Error as error:
        raise HashingError(str(error)) from error


def _mosquitto(match: "re.Match[str]", password: bytes) -> bool:
    iterations, salt, expected = match[1], decoded(match[2]), decoded(match[3])
    if iterations is None:
        found = hashlib.sha512(password + salt).digest()
    else:
        found = hashlib.pbkdf2_hmac("sha512", password, salt, int(iterations))
    return hmac.compare_digest(found, expected)


def _rabbitmq(match: "re.Match[str]", password: bytes) -> bool:
    octets = decoded(match[2])
    salt, expected = octets[:RABBITMQ_SALT], octets[RABBITMQ_SALT:]
    return hmac.compare_digest(hashlib.new(f"sha{match[1]}", salt + password).digest(), expected)


def decoded(text: str) -> bytes:
    """What base64 stands for; b"" if the text is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
