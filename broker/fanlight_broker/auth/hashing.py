"""How passwords are hashed: argon2id, at the costs that OWASP recommends for servers.

19 MiB and two passes take some 40 ms of a core (measured; the default of 64 MiB and three passes takes 220 ms, which a
broker that routes messages on that core cannot spend on every guess). A file may hold hashes of other costs: each
hash contains its own.
"""

from typing import Final

import argon2

HASHER: Final = argon2.PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


def matches(hash: str, password: str) -> bool:
    """Whether `password` is the one of `hash`. Raises argon2.exceptions.Argon2Error if the check fails."""
    try:
        return HASHER.verify(hash, password.encode(errors="surrogatepass"))
    except argon2.exceptions.VerifyMismatchError:
        return False
