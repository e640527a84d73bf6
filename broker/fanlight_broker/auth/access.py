"""Who is admitted without credentials, and what credentials are checked against.

Credentials that a client gives are always checked. A client without credentials is admitted if nothing is configured to
check them against (the settings then keep listeners on loopback addresses), or if `allow_anonymous` is set.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fanlight_broker.auth.hook import HookRules

if TYPE_CHECKING:  # for those who have tokens
    from fanlight_broker.auth.tokens import TokenRules


@dataclass(frozen=True, slots=True)
class Credentials:
    """The settings of access: one of the first three, or none of them; tokens and the hook beside them, or alone."""

    users_file: Path | None = None
    password_file: Path | None = None
    password: str | None = field(default=None, repr=False)  # one for everybody, under any user name
    tokens: "TokenRules | None" = None
    hook: HookRules | None = None
    certificate_groups: tuple[tuple[str, str], ...] = ()  # pattern of a user name, group
    allow_anonymous: bool = False
    configured: bool = field(init=False, compare=False, repr=False)  # asked several times in each login

    def __post_init__(self) -> None:
        checked = (self.users_file, self.password_file, self.password, self.tokens, self.hook)
        object.__setattr__(self, "configured", any(each is not None for each in checked))

    @property
    def anonymous_allowed(self) -> bool:
        return self.allow_anonymous or not self.configured
