"""Users, as a users file or a password file has them, and what may be said of one, there or in a token."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from sys import intern
from typing import Final, NamedTuple

from fanlight_broker.auth.password_file import why_not_a_user
from fanlight_broker.auth.scram_keys import ScramKeys
from fanlight_broker.core.identity import ANONYMOUS_GROUP
from fanlight_broker.core.quota import InvalidQuota, quota_of

GROUPS_MAX: Final = 64  # of one user
LIMITS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class User:
    """What is known of one user."""

    password: str = field(repr=False)  # a hash, see hashing.py
    scram: ScramKeys | None = None
    groups: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)
    permissions: str = ""  # rules of its own, as one text

    @property
    def fingerprint(self) -> str:
        """Equal for equal users."""
        scram = self.scram.text() if self.scram is not None else ""
        parts = [self.password, scram, sorted(self.groups), sorted(self.limits.items()), self.permissions]
        return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


class Users(NamedTuple):
    users: Mapping[str, User]  # by name
    decoy_key: bytes  # b"" if the file has none


def why_not_groups(groups: object) -> str:
    """Why a value is no list of groups; "" if it is one."""
    if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
        return "groups must be a list of texts"
    if len(groups) > GROUPS_MAX:
        return f"more than {GROUPS_MAX} groups"
    for group in groups:
        if why_not_a_user(group):
            return f"{group[:60]!r} is no name of a group; the rules are those of user names"
        if group == ANONYMOUS_GROUP:
            return f"the group {ANONYMOUS_GROUP!r} is of clients without a user"
    return ""


def why_not_limits(limits: object) -> str:
    """Why a value is no table of limits; "" if it is one."""
    if not isinstance(limits, dict) or len(limits) > LIMITS_MAX:
        return f"limits must be a table of at most {LIMITS_MAX} whole numbers"
    for name, value in limits.items():
        if not isinstance(value, int) or isinstance(value, bool):
            return f"limit {name}: must be a whole number from 0"
    try:
        quota_of(limits)
    except InvalidQuota as error:
        return str(error)
    return ""


def permissions_of(value: object) -> str:
    """Rules of a user's own as one text; equal ones are kept once. Raises ValueError, which says what is wrong."""
    if not value and isinstance(value, list | None):
        return ""
    from fanlight_permissions.own_rules import own_rules  # for those who have some

    return intern(own_rules(value))
