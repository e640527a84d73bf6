"""Who a client is, as far as that is known.

    user         a name that was checked, "" for an anonymous client
    verified     the name is proven to be this client's own: by a password of its own, a certificate, or a plug-in
    label        a user name that nothing was checked against; for logs and views, and without any rights
    groups       that the user is in. An anonymous client is in the group `anonymous` alone, and nobody else is in it
    expires      when the connection ends, in seconds of the wall clock; None: the credentials do not expire
    limits       of this user, by the names of the settings of quotas
    permissions  rules that it brings along, as one text (fanlight_permissions/own_rules.py); "": it brings none

With one password for everybody the password is checked and the name is not: there is a user, and it is not verified.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

ANONYMOUS_GROUP: Final = "anonymous"
_ANONYMOUS_GROUPS: Final = frozenset({ANONYMOUS_GROUP})


@dataclass(frozen=True, slots=True)
class Identity:
    """What an authenticator found out. `credential` is what the client was let in by, for `Authenticator.stands`.

    Raises:
        ValueError: a user is in the group `anonymous`.
    """

    user: str = ""
    verified: bool = False
    label: str = ""
    credential: str = field(default="", repr=False)  # "" if nothing was checked
    groups: frozenset[str] = frozenset()
    expires: float | None = None
    limits: Mapping[str, int] = field(default_factory=dict, hash=False)
    permissions: str = ""

    def __post_init__(self) -> None:
        if self.anonymous:
            object.__setattr__(self, "groups", _ANONYMOUS_GROUPS)
        elif ANONYMOUS_GROUP in self.groups:
            raise ValueError("only clients without a user are in the group 'anonymous'")

    @property
    def anonymous(self) -> bool:
        return not self.user


ANONYMOUS: Final = Identity()
