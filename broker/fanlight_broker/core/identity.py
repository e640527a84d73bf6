"""Who a client is, as far as that is known.

    user      a name that was checked, "" for an anonymous client
    verified  the name is proven to be this client's own: by a password of its own, a certificate, or a plug-in
    label     a user name that nothing was checked against; for logs and views, and without any rights

With one password for everybody the password is checked and the name is not: there is a user, and it is not verified.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Identity:
    """What an authenticator found out. `credential` is what the client was let in by, for `Authenticator.stands`."""

    user: str = ""
    verified: bool = False
    label: str = ""
    credential: str = field(default="", repr=False)  # "" if nothing was checked

    @property
    def anonymous(self) -> bool:
        return not self.credential


ANONYMOUS = Identity()
