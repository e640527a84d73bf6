"""The words of a decision: what somebody wants to do, who it is, and what is said to it.

    Asker --table.PermissionTable.grant_of--> Grant, of its permission class --decide--> Verdict
"""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from matchcore.kleene import Fields


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
    protocol: str = ""  # without its version: "mqtt", also where it is given as "mqtt 5.0"
    listener: str = ""
    own: str = ""  # the text of rules that it brings along: own_rules.py
    namespace: str = ""  # that it is in; "": the root

    def __post_init__(self) -> None:
        if " " in self.protocol:
            object.__setattr__(self, "protocol", self.protocol.partition(" ")[0])


class NoNamespace(Exception):
    """A client is to be in a namespace, and has no name that it can be called after."""


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


class Weighed(NamedTuple):
    """Which rules count for a filter, by their labels; "": none does."""

    allowing: str  # the first one that allows all of it
    denying: str  # the first one that denies some of it, before that
    whole: bool  # ... and all of it


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

    def permits(self, action: Action, topic: bytes, syntax: str) -> bool:
        """Is it allowed, whatever a message says? `decide` says by which rule, or why not."""
        ...

    def decide_filter(self, action: Action, filter: bytes, syntax: str) -> FilterVerdict: ...
