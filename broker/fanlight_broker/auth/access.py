"""Who is admitted without credentials, and what credentials are checked against.

Credentials that a client gives are always checked. A client without credentials is admitted if nothing is configured to
check them against (the settings then keep listeners on loopback addresses), or if `allow_anonymous` is set.
"""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Credentials:
    """The settings of access: one of the first three, or none of them."""

    users_file: Path | None = None
    password_file: Path | None = None
    password: str | None = field(default=None, repr=False)  # one for everybody, under any user name
    allow_anonymous: bool = False

    @property
    def configured(self) -> bool:
        return self.users_file is not None or self.password_file is not None or self.password is not None

    @property
    def anonymous_allowed(self) -> bool:
        return self.allow_anonymous or not self.configured
