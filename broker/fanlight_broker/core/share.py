"""Share: what one principal uses of the pots (shares.py), and what one client of it does with quotas of other holders.

    Share        of a principal ---------------------------.
    JointShare   of one client or session of it  --counts in--> the principal's Share, and so in the totals
                                                 '------------> Shares of other holders: a group, an address, a name

A holder's Share is bounded by its quota alone, and has no part in the totals: its clients' principals have.
"""

from collections.abc import Mapping
from enum import StrEnum
from json import dumps, loads
from typing import Final

from fanlight_broker.wire.ledger import NO_QUOTA, Account, Pot, PotShare
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.pot_counts import PotCounts, PotTotals

STORED_NAME_MAX: Final = 65_000  # bytes of a text in a record; with longer names the principal alone is stored


class SharedPot(StrEnum):
    """What principals have shares of."""

    SESSIONS = "sessions"
    SESSIONS_BYTES = "sessions_bytes"
    SUBSCRIPTIONS = "subscriptions"
    SUBSCRIPTIONS_BYTES = "subscriptions_bytes"
    SEARCHING_FILTERS = "searching_filters"
    RETAINED_MESSAGES = "retained_messages"
    RETAINED_BYTES = "retained_bytes"
    STORED_BYTES = "stored_bytes"
    MARKS = "marks"
    QUEUES = "queues"
    DELAYED_MESSAGES = "delayed_messages"
    DELAYED_BYTES = "delayed_bytes"

    @property
    def limit(self) -> str:
        """The setting that bounds it for all principals together."""
        return f"{self}_max"

    @property
    def setting(self) -> str:
        """The setting that bounds it for one principal, if it is not 0."""
        kind = "subscriptions" if self is SharedPot.SEARCHING_FILTERS else self.split("_")[0]
        return f"{kind}_share_percent"


# Those that are asked about for each consumer: in Python 3.11 a class looks its members up slowly.
SUBSCRIPTIONS: Final = SharedPot.SUBSCRIPTIONS
SUBSCRIPTIONS_BYTES: Final = SharedPot.SUBSCRIPTIONS_BYTES
NUMBERS: Final = {pot: number for number, pot in enumerate(SharedPot)}  # in `wire.PotCounts`

# What a share's account and pot count, and what the ledger counts in all.
OF_ITS_ACCOUNT: Final = frozenset({SharedPot.STORED_BYTES, SharedPot.RETAINED_BYTES, SharedPot.SESSIONS_BYTES})
OF_THE_LEDGER: Final = OF_ITS_ACCOUNT | {SharedPot.SUBSCRIPTIONS_BYTES}


Traffic = tuple[int, int, int, int]  # messages and bytes that clients published, messages and bytes sent to them
NO_TRAFFIC: Final[Traffic] = (0, 0, 0, 0)


def traffic(passed: Traffic, outbox: Outbox) -> Traffic:
    """With that of one connection more. Bytes published are those of topics and payloads; bytes sent are all."""
    return (
        passed[0] + outbox.published, passed[1] + outbox.published_bytes, passed[2] + outbox.sent,
        passed[3] + outbox.bytes_out,
    )


class Share:
    """What one principal uses."""

    __slots__ = (
        "__weakref__", "account", "by_quota", "clients", "connections_refused", "counts", "entry", "key", "passed",
        "principal", "producers", "refused", "replays", "sessions",
    )
    holders: "tuple[Share, ...]" = ()  # of other quotas, that it counts in as well: a JointShare has some

    def __init__(
        self, principal: str, sessions: Pot, totals: PotTotals, key: tuple[str, ...] = (), *, by_quota: bool = False
    ) -> None:
        self.principal = principal
        self.key = key  # of a holder of a quota that is no principal: its kind, its name, its entry
        self.by_quota = by_quota  # it is of another holder of a quota than a principal: nothing else bounds it
        self.account = Account(None, by_quota)
        self.sessions = PotShare(sessions)
        self.clients = 0  # connected
        self.replays = 0  # that read the archive
        self.connections_refused = 0
        self.entry: object = None  # the core.quota.Quota that it was bound by last
        self.passed = NO_TRAFFIC  # by connections that have ended
        self.counts = PotCounts(totals)  # without those of `account` and `sessions`: bytes stored, retained ...
        self.refused = dict.fromkeys(SharedPot, 0)
        self.producers: dict[tuple[str, str], None] = {}  # user and producer, the least recently used first

    def used(self, pot: SharedPot) -> int:
        if pot not in OF_ITS_ACCOUNT:
            return self.counts.used_of(NUMBERS[pot])
        if pot is SharedPot.STORED_BYTES:
            return self.account.stored
        if pot is SharedPot.RETAINED_BYTES:
            return self.account.retained
        return self.sessions.used

    @property
    def held(self) -> dict[SharedPot, int]:
        """What `counts` has."""
        return {pot: self.counts.used_of(number) for pot, number in NUMBERS.items()}

    def refusals(self, pot: SharedPot) -> int:
        """How often its share had no room."""
        if pot is SharedPot.STORED_BYTES:
            return self.account.refused
        return self.refused[pot] + (self.sessions.refused if pot is SharedPot.SESSIONS_BYTES else 0)

    def bound(self, quota: Mapping[SharedPot, int]) -> None:
        """Bound it by these numbers, and no others, beside its part of what the others leave."""
        for pot, number in NUMBERS.items():
            if pot not in OF_ITS_ACCOUNT:
                self.counts.bound(number, quota.get(pot))
        self.account.most = quota.get(SharedPot.STORED_BYTES, NO_QUOTA)
        self.account.retained_most = quota.get(SharedPot.RETAINED_BYTES, NO_QUOTA)
        self.sessions.most = quota.get(SharedPot.SESSIONS_BYTES, NO_QUOTA)

    def quota(self, pot: SharedPot) -> int | None:
        """What it is bounded by, if it is."""
        if pot not in OF_ITS_ACCOUNT:
            return self.counts.most_of(NUMBERS[pot])
        most = {
            SharedPot.STORED_BYTES: self.account.most, SharedPot.RETAINED_BYTES: self.account.retained_most,
            SharedPot.SESSIONS_BYTES: self.sessions.most,
        }[pot]
        return None if most == NO_QUOTA else most

    def ended(self, connection: Outbox) -> None:
        """Keep what a connection has counted."""
        self.passed = traffic(self.passed, connection)

    @property
    def empty(self) -> bool:
        return not (self.clients or self.account.stored or self.counts)

    @property
    def root(self) -> "Share":
        """Of its principal."""
        return self

    @property
    def parts(self) -> "tuple[Share, ...]":
        """All that it counts in, its principal's first."""
        return (self,)

    @property
    def with_parts(self) -> "tuple[Share, ...]":
        """Itself, and all that it counts in."""
        return self.parts

    @property
    def stored_name(self) -> str:
        """Whose it is, as the store has it: `holders_in` reads it."""
        return self.principal


class JointShare(Share):
    """What one client or session uses, whose quotas have other holders beside its principal.

    What is counted here is counted in all its parts. When its holders change, all of it moves.
    """

    __slots__ = ("_root", "holders")

    def __init__(self, root: Share, holders: tuple[Share, ...], totals: PotTotals) -> None:
        self.principal, self.key, self.by_quota = root.principal, (), False
        self._root = root
        self.holders = ()
        self.account = Account(root.account)
        self.sessions = PotShare(root.sessions.whole, root.sessions)
        self.counts = PotCounts(totals, root.counts)
        self.producers = {}
        self.join(holders)

    def join(self, holders: tuple[Share, ...]) -> None:
        """Count for these holders, and no longer for those before."""
        for each in self.holders:
            for producer in self.producers:
                del each.producers[producer]
        for each in holders:
            each.producers.update(self.producers)
        self.holders = holders
        self.account.join(tuple(each.account for each in holders))
        self.sessions.join(tuple(each.sessions for each in holders))
        self.counts.join(tuple(each.counts for each in holders))

    @property
    def root(self) -> Share:
        return self._root

    @property
    def parts(self) -> tuple[Share, ...]:
        return self._root, *self.holders

    @property
    def with_parts(self) -> tuple[Share, ...]:
        return self, self._root, *self.holders

    @property
    def empty(self) -> bool:
        return not (self.account.stored or self.counts)

    @property
    def stored_name(self) -> str:
        name = dumps([self.principal, *(each.key for each in self.holders)], ensure_ascii=False)
        return name if len(name.encode(errors="surrogatepass")) <= STORED_NAME_MAX else self.principal


def holders_in(stored_name: str) -> tuple[str, list[tuple[str, ...]]]:
    """A principal, and the keys of other holders: the opposite of `Share.stored_name`."""
    if not stored_name.startswith("["):
        return stored_name, []
    principal, *keys = loads(stored_name)
    return principal, [tuple(each) for each in keys]
