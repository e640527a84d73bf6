"""Users, as a users file or a password file has them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from fanlight_broker.auth.scram_keys import ScramKeys


@dataclass(frozen=True, slots=True)
class User:
    """What is known of one user."""

    password: str = field(repr=False)  # a hash, see hashing.py
    scram: ScramKeys | None = None
    groups: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Equal for equal users."""
        scram = self.scram.text() if self.scram is not None else ""
        parts = [self.password, scram, sorted(self.groups), sorted(self.limits.items())]
        return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


class Users(NamedTuple):
    users: Mapping[str, User]  # by name
    decoy_key: bytes  # b"" if the file has none
