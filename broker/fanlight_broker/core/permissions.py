"""Permissions: who may do what on which topics (docs/decisions/0021-permissions.md). Here: what the core needs of them.

    a client's Asker --Permissions.grant_of--> Grant, of its permission class --decide--> Verdict
                                                 |
                                                 '--> Subscriber.grant; its number is a bit in each Route

Clients of which no rule can decide differently are of one class, and share one `Grant`. Who may publish on a topic is
decided once for each class and route. A `Permissions` never changes: others take its place as a whole. The words of a
decision are also those of the rules, and come from there: fanlight_permissions/decisions.py.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from fanlight_permissions.decisions import ON_TOPICS, Access, Action, Asker, FilterVerdict, Grant, NoNamespace, Verdict

if TYPE_CHECKING:
    from fanlight_permissions.table import PermissionTable
    from matchcore.kleene import Fields
    from matchcore.selector import Attribute

__all__ = [
    "ALLOWED",
    "ALL_ALLOWED",
    "EVERYTHING",
    "NOWHERE",
    "ON_TOPICS",
    "Access",
    "Action",
    "Asker",
    "Everything",
    "FilterVerdict",
    "Grant",
    "NoNamespace",
    "Origin",
    "Permissions",
    "Unrestricted",
    "Verdict",
]


class Origin(NamedTuple):
    """What is known of a connection, and of its user, beside the names."""

    groups: frozenset[str] = frozenset()
    certificate: str = ""
    address: str = ""
    listener: str = ""
    client: str | None = None  # of what has a name of its own, as a queue has: the client that made it; "" if unknown
    protocol: str = ""  # and its protocol
    namespace: str = ""  # that it is in; "": the root
    own: str = ""  # the text of the rules that it brings along (fanlight_permissions/own_rules.py)
    chosen: bool = False  # the permissions have it in the root, and it has chosen another namespace that is open to all

    def asker(self, user: str, client: str, protocol: str) -> Asker:
        if self.client is not None:
            client, protocol = self.client, self.protocol
        return Asker(
            user, self.groups, client, self.certificate, self.address, protocol, self.listener, self.own, self.namespace
        )


class Permissions(Protocol):
    """The rules in force."""

    @property
    def unrestricted(self) -> bool:
        """True: everything is permitted, without a check, to those who bring no rules along."""
        ...

    @property
    def attributes(self) -> "Collection[Attribute]":
        """What rules ask of messages: `fields` has those of them that a message has, by `matchcore.kleene.key_of`."""
        ...

    def grant_of(self, asker: Asker) -> Grant:
        """The grant of somebody who connects, subscribes or asks by HTTP. Held until `release`."""
        ...

    def namespace_of(self, asker: Asker) -> str:
        """The namespace that somebody is in; "": the root. Raises NoNamespace for who has no valid one."""
        ...

    def release(self, grant: Grant) -> None:
        """One who held it has gone."""
        ...


class Everything:
    """The grant of everybody where no permissions are set."""

    number = 0

    def decide(
        self, action: Action, topic: bytes = b"", syntax: str = "", fields: "Fields | None" = None
    ) -> Verdict:
        return ALLOWED

    def permits(self, action: Action, topic: bytes, syntax: str) -> bool:
        return True

    def decide_filter(self, action: Action, filter: bytes, syntax: str) -> FilterVerdict:
        return ALL_ALLOWED


class Unrestricted:
    """Everybody may do everything, but for those who bring rules along: these alone decide then."""

    unrestricted = True
    attributes: "Collection[Attribute]" = ()

    def __init__(self) -> None:
        self._of_own_rules: PermissionTable | None = None

    def grant_of(self, asker: Asker) -> Grant:
        if not asker.own:
            return EVERYTHING
        if self._of_own_rules is None:
            from fanlight_permissions.table import table_without_rules  # for those who bring rules along

            self._of_own_rules = table_without_rules()
        return self._of_own_rules.grant_of(asker)

    def namespace_of(self, asker: Asker) -> str:
        return ""

    def release(self, grant: Grant) -> None:
        if self._of_own_rules is not None and grant is not EVERYTHING:
            self._of_own_rules.release(grant)


NOWHERE: Final = Origin()
ALLOWED: Final = Verdict(True)
ALL_ALLOWED: Final = FilterVerdict(Access.ALL)
EVERYTHING: Final = Everything()
