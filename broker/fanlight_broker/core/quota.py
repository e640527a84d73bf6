"""A quota: what its holder may use and how fast, in absolute numbers (docs/decisions/0023-quotas.md).

A share (shares.py) is a part of what the others leave, and every principal has one. A quota is an operator's number for
some of them, and holds beside the share: the smaller one counts. Which quotas a client has is decided when it connects
(`Quotas`), and again when others are put in force.

    holder (Per)   one quota for all clients      of which
    user           of a principal                 pots (shares.py), rates, counts, maxima
    client         of one name of a principal     the same
    group          whose user is of the group     the same
    address        from one address               the same

A client has at most one of each kind; all of them hold, so a wider one grants nothing that a narrower one does not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from fanlight_broker.core.permissions import Asker
from fanlight_broker.core.shares import SharedPot, principal_of


class InvalidQuota(ValueError):
    """A quota cannot be used. The text names the entry, and says what it may be."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Messages and bytes of topics and payloads a second; 0: as many as there are."""

    messages: float = 0.0
    octets: float = 0.0

    def __bool__(self) -> bool:
        return self.messages > 0 or self.octets > 0


class Per(StrEnum):
    """Whose clients have a quota together."""

    USER = "user"  # all of one principal: of a verified user, or else of an address
    CLIENT = "client"  # those of a principal that call themselves the same
    GROUP = "group"
    ADDRESS = "address"


class Holder(NamedTuple):
    """Whose a quota is. The key of all that is counted for it."""

    per: Per
    name: str
    entry: str = ""  # of the file: quotas of two entries are two, but for those of users


@dataclass(frozen=True, slots=True)
class Quota:
    """Of one holder: all its clients and sessions together. What is not named is not bounded by it."""

    name: str = ""  # of the entry that it comes from; for people
    pots: Mapping[SharedPot, int] = field(default_factory=dict)
    connections: int | None = None
    publish: Rate = Rate()
    deliver: Rate = Rate()  # what is sent to them, in bytes of whole frames
    burst_seconds: float = 1.0  # of each rate, that may pass at once
    refuse: bool = False  # what is published too fast: else its publisher is not read from for a while
    replays: int | None = None  # that read at the same time
    maxima: Mapping[str, int] = field(default_factory=dict)  # of one message, queue or connection, by MAXIMA
    logins: Rate = Rate()  # as messages: clients that log in
    also: "tuple[HeldQuota, ...]" = ()  # of other holders, that hold for the same client

    def least(self, name: str) -> int | None:
        """The smallest maximum of all that hold for a client; None: nothing bounds it."""
        if not (self.maxima or self.also):  # most clients
            return None
        found = [quota.maxima[name] for quota in (self, *(each.quota for each in self.also)) if name in quota.maxima]
        return min(found, default=None)

    @property
    def pot_holders(self) -> "tuple[Holder, ...]":
        """Those beside the principal whose pots are bounded."""
        return tuple(each.holder for each in self.also if each.quota.pots) if self.also else ()


class HeldQuota(NamedTuple):
    """A quota that holds for a client, and whose it is."""

    holder: Holder
    quota: Quota


NO_QUOTA: Final = Quota()
RATES: Final = ("logins", "publish_messages", "publish_bytes", "deliver_messages", "deliver_bytes")  # a second
COUNTS: Final = ("connections", "replays")
MAXIMA: Final = {  # with the smallest that each may be
    "message_bytes": 1,  # of the frame or packet of one message
    "queue_messages": 1,  # that wait, in the queue of one session, or a named one
    "queue_bytes": 1,  # of these
    "topic_aliases": 0,  # of one connection
    "receive_maximum": 1,  # messages of QoS 2 of one session that are not released
}
OTHERS: Final = ("burst_seconds", "over_rate")
POTS: Final = tuple(pot.value for pot in SharedPot)
BURST_SECONDS_MAX: Final = 3_600.0

# Whose a quota of each kind is: the one place that says so. Another kind is one more line, and one of Per.
HOLDERS: Final[Mapping[Per, Callable[[Asker, str], str]]] = {
    Per.USER: lambda asker, _: principal(asker),
    Per.CLIENT: lambda asker, _: f"client {asker.client} of {principal(asker)}",
    Per.GROUP: lambda _, group: f"group {group}",
    Per.ADDRESS: lambda asker, _: principal_of("", asker.address, verified=False),
}


def principal(asker: Asker) -> str:
    return principal_of(asker.user, asker.address, verified=bool(asker.user), namespace=asker.namespace)


def quota_of(entries: Mapping[str, object], name: str = "") -> Quota:
    """A quota from its entries, as they are in a file of quotas or in what is known of a user. Raises InvalidQuota."""
    counts: dict[str, int] = {}
    rates: dict[str, float] = {}
    maxima: dict[str, int] = {}
    burst, refuse = 1.0, False
    for key, value in entries.items():
        if key in RATES:
            rates[key] = _number(key, value)
        elif key in POTS or key in COUNTS:
            counts[key] = _count(key, value)
        elif key in MAXIMA:
            maxima[key] = _count(key, value, MAXIMA[key])
        elif key == "burst_seconds":
            burst = _number(key, value)
            if not 0 < burst <= BURST_SECONDS_MAX:
                raise InvalidQuota(f"burst_seconds is {value!r}; it is above 0, at most {BURST_SECONDS_MAX:g}")
        elif key == "over_rate":
            if value not in ("hold", "refuse"):
                raise InvalidQuota(f'over_rate is {value!r}; it is "hold" or "refuse"')
            refuse = value == "refuse"
        else:
            there_are = ", ".join((*COUNTS, *POTS, *RATES, *MAXIMA, *OTHERS))
            raise InvalidQuota(f"there is no quota {key!r}; there are {there_are}")
    return Quota(
        name, {SharedPot(key): value for key, value in counts.items() if key in POTS},
        counts.get("connections"),
        Rate(rates.get("publish_messages", 0.0), rates.get("publish_bytes", 0.0)),
        Rate(rates.get("deliver_messages", 0.0), rates.get("deliver_bytes", 0.0)),
        burst, refuse, counts.get("replays"), maxima, logins=Rate(rates.get("logins", 0.0)),
    )  # fmt: skip


def _count(key: str, value: object, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**56:
        raise InvalidQuota(f"{key} is {value!r}; it is a whole number from {least} up")
    return value


def _number(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**56:
        raise InvalidQuota(f"{key} is {value!r}; it is a number from 0 up, and 0 is no limit")
    return float(value)


class Quotas(Protocol):
    """The quotas in force, none of which changes. Others take their place as a whole (`Broker.use_quotas`)."""

    @property
    def empty(self) -> bool: ...

    def of(self, asker: Asker, own: Mapping[str, int]) -> Quota:
        """The quota of the principal of a client. own: what is known of the user alone, which counts first."""
        ...

    def held(self, holder: Sequence[str]) -> Quota | None:
        """The quota of a holder that is no principal (`Holder`); None: its entry is not in force."""
        ...


class NoQuotas:
    """No file of quotas: only users have some, if they do."""

    empty = True

    def of(self, asker: Asker, own: Mapping[str, int]) -> Quota:
        return quota_of(own, f"user {asker.user}") if own else NO_QUOTA

    def held(self, holder: Sequence[str]) -> Quota | None:
        return None
