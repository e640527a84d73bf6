"""How passwords are hashed: argon2id, at the costs that OWASP recommends for servers.

19 MiB and two passes take some 40 ms of a core (measured; the default of 64 MiB and three passes takes 220 ms, which a
broker that routes messages on that core cannot spend on every guess). A file may hold hashes of other costs: each
hash contains its own.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imported for the first password: a broker without passwords does not need it
    from argon2 import PasswordHasher


class HashingError(Exception):
    """argon2 failed, most likely for lack of memory. Nothing is known of the password."""


@cache
def hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


def matches(hash: str, password: str) -> bool:
    """Whether `password` is the one of `hash`. Raises HashingError."""
    from argon2.exceptions import Argon2Error, VerifyMismatchError

    try:
        return hasher().verify(hash, password.encode(errors="surrogatepass"))
    except VerifyMismatchError:
        return False
    except Argon2Error as error:
        raise HashingError(str(error)) from error
