"""Permissions: who may do what on which topics (docs/decisions/0021-permissions.md). Here: what the core needs of them.

    a client's Asker --Permissions.grant_of--> Grant, of its permission class --decide--> Verdict
                                                 |
                                                 '--> Subscriber.grant; its number is a bit in each Route

Clients of which no rule can decide differently are of one class, and share one `Grant`. Who may publish on a topic is
decided once for each class and route. A `Permissions` never changes: others take its place as a whole.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from matchcore.kleene import Fields
    from matchcore.selector import Attribute


class Action(StrEnum):
    """What somebody wants to do. Those of `ON_TOPICS` are asked with a topic or a filter, the others without."""

    CONNECT = "connect"
    PUBLISH = "publish"
    RETAIN = "retain"  # beside PUBLISH: keep the message as the retained one of its topic, or clear it
    WILL = "will"  # beside PUBLISH: asked at CONNECT, and again when the will is published
    SUBSCRIBE = "subscribe"
    REQUEST = "request"  # beside PUBLISH, on the same topic: name a topic for the reply
    REPLAY = "replay"  # read from the archive what was published before
    QUEUE = "queue"  # declare, bind, peek, purge or delete a named queue; its consumers subscribe
    ADMIN_READ = "admin:read"
    ADMIN_WRITE = "admin:write"


ON_TOPICS: Final = frozenset(Action) - {Action.CONNECT, Action.ADMIN_READ, Action.ADMIN_WRITE}


@dataclass(frozen=True, slots=True)
class Asker:
    """Who wants it, as far as rules may ask. "" where something is not known; `user` is one that was verified."""

    user: str = ""
    groups: frozenset[str] = frozenset()
    client: str = ""  # the client identifier: what the client says of itself
    certificate: str = ""  # the subject of its verified certificate
    address: str = ""  # without the port
    protocol: str = ""
    listener: str = ""


class Origin(NamedTuple):
    """What is known of a connection, and of its user, beside the names."""

    groups: frozenset[str] = frozenset()
    certificate: str = ""
    address: str = ""
    listener: str = ""
    client: str | None = None  # of what has a name of its own, as a queue has: the client that made it; "" if unknown
    protocol: str = ""  # and its protocol

    def asker(self, user: str, client: str, protocol: str) -> Asker:
        if self.client is not None:
            client, protocol = self.client, self.protocol
        return Asker(user, self.groups, client, self.certificate, self.address, protocol, self.listener)


class Verdict(NamedTuple):
    """A decision. `rule` is the name or the place of the rule that decided; "" if none did, which is a denial."""

    allowed: bool
    rule: str = ""
    by_content: bool = False  # it holds for these fields alone: ask for each message


class Access(Enum):
    """How much of what a filter matches is allowed."""

    NONE = auto()
    PARTLY = auto()  # a rule allows all of it, and a more salient one denies some: `decide` for each topic
    ALL = auto()


class FilterVerdict(NamedTuple):
    access: Access
    rule: str = ""  # that allows or denies it
    denied_by: str = ""  # of `PARTLY`: the first rule that denies some of it


class Grant(Protocol):
    """What clients of one permission class may do. Compared by identity."""

    @property
    def number(self) -> int:
        """Of the class, from 0; numbers of classes that nobody is in are used again. It is a bit in the routes."""
        ...

    def decide(
        self, action: Action, topic: bytes = b"", syntax: str = "", fields: "Fields | None" = None
    ) -> Verdict:
        """fields: of the message, if they are at hand. Without them, `by_content` says that they would matter."""
        ...

    def decide_filter(self, action: Action, filter: bytes, syntax: str) -> FilterVerdict: ...


class Permissions(Protocol):
    """The rules in force."""

    @property
    def unrestricted(self) -> bool:
        """True: everything is permitted, without a check."""
        ...

    @property
    def attributes(self) -> "Collection[Attribute]":
        """What rules ask of messages: `fields` has those of them that a message has, by `matchcore.kleene.key_of`."""
        ...

    def grant_of(self, asker: Asker) -> Grant:
        """The grant of somebody who connects, subscribes or asks by HTTP. Held until `release`."""
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

    def decide_filter(self, action: Action, filter: bytes, syntax: str) -> FilterVerdict:
        return ALL_ALLOWED


class Unrestricted:
    unrestricted = True
    attributes: "Collection[Attribute]" = ()

    def grant_of(self, asker: Asker) -> Grant:
        return EVERYTHING

    def release(self, grant: Grant) -> None:
        pass


NOWHERE: Final = Origin()
ALLOWED: Final = Verdict(True)
ALL_ALLOWED: Final = FilterVerdict(Access.ALL)
EVERYTHING: Final = Everything()
UNRESTRICTED: Final = Unrestricted()
