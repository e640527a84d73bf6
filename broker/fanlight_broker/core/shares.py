"""Shares: how much of the broker's memory and tables one principal may use.

A principal is the authenticated user. Where a user name proves nothing (anonymous clients, or one password for all of
them) it is the address, for IPv6 the /64 network. All clients and sessions of a principal have one Share:

    pot (limits.py)                      counted here
    sessions_max                         sessions, connected and disconnected
    sessions_bytes_max                   `wire.PotShare`: names, wills, QoS 2 identifiers and tables of its sessions
    subscriptions_max                    subscriptions of all its clients
    subscriptions_bytes_max              their filters and groups, and an estimate of their part of the index
    searching_filters_max                those of its subscriptions whose filter has several `#`
    retained_messages_max, ..bytes_max   retained messages that it published last
    stored_bytes_max                     `wire.Account`: messages in its queues, in flight to it, and retained
    marks_max                            producers that it advanced last
    queues_max                           named queues that it declared
    delayed_messages_max, ..bytes_max    messages that it published and that are not due yet

A principal may use a part (`share_percent`) of what the others leave of a pot. So one principal cannot empty a pot, and
several that try together still leave some for the next. A quota (quota.py) bounds it by numbers of its own beside that.
What belongs to no principal, such as the inner tables of an
index, counts as used by others: it makes every share smaller, never larger. As an index grows by a large step, an
eighth of its pot is kept for that. A Share exists as long as anything is counted in it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import nlargest
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import Final, Protocol
from weakref import WeakValueDictionary

from fanlight_broker import event_log
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.share import (
    NO_TRAFFIC,
    NUMBERS,
    OF_THE_LEDGER,
    SUBSCRIPTIONS_BYTES,
    JointShare,
    Share,
    SharedPot,
    Traffic,
    holders_in,
    traffic,
)
from fanlight_broker.wire.hidden import hide, show
from fanlight_broker.wire.ledger import Ledger, Pot
from fanlight_broker.wire.pot_counts import PotTotals

__all__ = [
    "NO_TRAFFIC", "NUMBERS", "JointShare", "Share", "SharedPot", "Shares", "Traffic", "percent_of", "principal_of",
    "traffic",
]

log: Final = event_log.get("shares")

IPV6_NETWORK: Final = 64  # bits that a provider assigns to one customer: all its addresses are one principal
# Of `subscriptions_bytes_max`, for the steps in which an index grows, which are of nobody: they took 6 to 12 % of it.
INDEX_PART: Final = 8
UNLIMITED: Final = 1 << 56  # the largest that `PotTotals` has
ADDRESSES_MAX: Final = 4_096  # whose principals are remembered: 1 MB


def principal_of(user: str, address: str, *, verified: bool, namespace: str = "") -> str:
    """The name of the principal: a user, or an address; a namespace is one, whoever is in it."""
    if namespace:
        return f"namespace {namespace}"
    return f"user {user}" if verified and user else _principal_at(address)


@lru_cache(ADDRESSES_MAX)  # to read an address takes longer than the rest of a look-up
def _principal_at(address: str) -> str:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return f"address {address}"
    if isinstance(found, IPv6Address):
        return f"address {found.ipv4_mapped or ip_network((found, IPV6_NETWORK), strict=False)}"
    return f"address {found}"


def percent_of(limits: Limits, pot: SharedPot) -> int:
    own: int = getattr(limits, pot.setting)
    return own or limits.share_percent


class HolderQuota(Protocol):
    """What `Shares` needs of a quota.Quota."""

    @property
    def pots(self) -> Mapping[SharedPot, int]: ...


class Shares:
    """The shares of all principals: at most as many as clients, sessions, retained messages and marks."""

    def __init__(self, ledger: Ledger, limits: Limits) -> None:
        self.ledger = ledger
        self._totals = PotTotals()
        # Of holders of quotas that are no principals, as long as a client, or what one has left, counts in them. What
        # they use is in the totals already, as that of its principal.
        self._holders: WeakValueDictionary[tuple[str, ...], Share] = WeakValueDictionary()
        self.quota_of: Callable[[tuple[str, ...]], HolderQuota | None] = lambda _: None  # of a holder, by its key
        self._apart, self._sessions_apart = PotTotals(), Pot("sessions of holders")
        for number in NUMBERS.values():
            self._apart.bound(number, UNLIMITED, 100)
        self.refused = dict.fromkeys(SharedPot, 0)
        self.connections_refused = 0
        self.replays = 0  # of all, that read the archive
        self._known: dict[str, Share] = {}
        self.use(limits)

    def use(self, limits: Limits) -> None:
        """Apply new limits. Nothing that is used is taken away."""
        self.limits = limits
        # Asked several times for each connection.
        self._percents = {pot: percent_of(limits, pot) for pot in SharedPot}
        self._limits: dict[SharedPot, int] = {pot: getattr(limits, pot.limit) for pot in SharedPot}
        for pot, number in NUMBERS.items():
            self._totals.bound(number, self._limits[pot], self._percents[pot], self._reserved(pot))
        self.ledger.stored_share = percent_of(limits, SharedPot.STORED_BYTES) / 100
        self.ledger.sessions.share = percent_of(limits, SharedPot.SESSIONS_BYTES) / 100

    def _reserved(self, pot: SharedPot) -> int:
        """Of a limit, for what belongs to nobody, where no principal may use all of it."""
        shared = pot is SharedPot.SUBSCRIPTIONS_BYTES and self._percents[pot] < 100
        return self._limits[pot] // INDEX_PART if shared else 0

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Share]:
        return iter(self._known.values())

    def of(self, principal: str) -> Share:
        """A principal's share; a new one is kept when something is first counted in it."""
        return self._known.get(principal) or Share(principal, self.ledger.sessions, self._totals)

    def holder(self, key: Sequence[str]) -> Share:
        """The share of another holder of a quota. key: its kind, its name and its entry (quota.Holder)."""
        found = self._holders.get(tuple(key))
        if found is None:
            found = Share(key[1], self._sessions_apart, self._apart, tuple(key), by_quota=True)
            self._holders[found.key] = found
            self.bind(found)
        return found

    def bind(self, holder: Share) -> None:
        """Bound a holder by its quota, if its entry is in force."""
        quota = self.quota_of(holder.key)
        holder.bound({} if quota is None else quota.pots)
        holder.entry = quota

    @property
    def holders(self) -> list[Share]:
        """Those of other holders than principals."""
        return list(self._holders.values())

    def joint(self, root: Share, keys: Sequence[Sequence[str]]) -> Share:
        """What one client counts in, whose quotas have these holders beside its principal."""
        return JointShare(root, tuple(map(self.holder, keys)), self._apart) if keys else root

    def stored(self, name: str) -> Share:
        """The share of a `stored_name`."""
        principal, keys = holders_in(name)
        return self.joint(self.of(principal), keys)

    @property
    def totals(self) -> dict[SharedPot, int]:
        """Of all principals, what `Share.held` is of one."""
        return {pot: self._totals.used_of(number) for pot, number in NUMBERS.items()}

    def total(self, pot: SharedPot) -> int:
        if pot not in OF_THE_LEDGER:
            return self._totals.used_of(NUMBERS[pot])
        if pot is SUBSCRIPTIONS_BYTES:
            return self.ledger.subscriptions.used
        if pot is SharedPot.STORED_BYTES:
            return self.ledger.stored
        return self.ledger.sessions.used if pot is SharedPot.SESSIONS_BYTES else self.ledger.retained

    def refusals(self, pot: SharedPot) -> int:
        """How often any principal's share had no room."""
        if pot is SharedPot.STORED_BYTES:
            return self.ledger.dropped_share
        return self.refused[pot] + (self.ledger.sessions.refused_shares if pot is SharedPot.SESSIONS_BYTES else 0)

    def limit(self, pot: SharedPot) -> int:
        """What all principals together may use."""
        return self._limits[pot]

    def largest(self, count: int) -> list[Share]:
        """Those that use the largest part of any pot, the largest first."""
        weights = [(pot, 1 / max(1, self.limit(pot))) for pot in SharedPot]

        def part(share: Share) -> float:
            return max(share.used(pot) * weight for pot, weight in weights)

        return nlargest(count, self, key=part)

    def most(self, share: Share, pot: SharedPot, leaving: int = 0) -> int:
        """What a principal may use of a pot now: a part of what the others leave, or are about to leave.

        leaving  what others are about to give back
        """
        share = share.root
        quota = share.quota(pot)
        if share.by_quota:
            return self.limit(pot) if quota is None else quota
        total = self.total(pot)
        if reserved := self._reserved(pot):
            total = max(total, self._totals.used_of(NUMBERS[pot]) + reserved)
        left = self.limit(pot) - (total - share.used(pot) - leaving)
        most = max(0, ceil(self._percents[pot] * left / 100))
        return most if quota is None else min(most, quota)

    def fits(self, share: Share, pot: SharedPot, more: int = 1, leaving: int = 0) -> bool:
        """Has a principal's share room for more? Of a joint one, that of each holder, too."""
        if share.holders:
            return all(self.fits(part, pot, more, leaving) for part in share.parts)
        share = share.root
        if pot not in OF_THE_LEDGER:
            return share.counts.has_room(NUMBERS[pot], more, leaving)
        quota = share.quota(pot)
        if quota is not None and more > 0 and share.used(pot) + more > quota:
            return False
        if share.by_quota:
            return True
        return self._totals.has_room(NUMBERS[pot], share.used(pot), self.total(pot) - leaving, more)

    def admits(self, share: Share, pot: SharedPot, more: int = 1) -> bool:
        """The same as `fits`; a refusal is counted."""
        if self.fits(share, pot, more):
            return True
        self._count_refusal(self.lacking(share, pot, more), pot)
        return False

    def lacking(self, share: Share, pot: SharedPot, more: int = 1) -> Share:
        """Which of its parts has no room."""
        return next((part for part in share.parts if not self.fits(part, pot, more)), share.root)

    def check(self, share: Share, pot: SharedPot, more: int = 1) -> None:
        """Raises LimitExceeded if a principal's share has no room for more."""
        if not self.fits(share, pot, more):
            raise self.refusal(self.lacking(share, pot, more), pot)

    def refusal(self, share: Share, pot: SharedPot) -> LimitExceeded:
        """The error for a principal whose share has no room, which is counted."""
        self._count_refusal(share, pot)
        quota, most = share.quota(pot), self.most(share, pot)
        if quota == most or share.by_quota:
            return LimitExceeded(f"{share.principal} has used up its quota of {pot}", f"quota {pot}", most)
        return LimitExceeded(f"{share.principal} has used up its share of {pot.limit}", pot.setting, most)

    def _count_refusal(self, share: Share, pot: SharedPot) -> None:
        self.refused[pot] += 1
        share.refused[pot] += 1
        if share.refused[pot] == 1:
            self._tell(share, pot)

    def charge(self, share: Share, pot: SharedPot, count: int = 1) -> None:
        """Count what a principal uses in addition."""
        if not share.counts.kept and not share.root.counts.kept:
            self._keep(share.root)
        share.counts.add(NUMBERS[pot], count)

    def refund(self, share: Share, pot: SharedPot, count: int = 1) -> None:
        """Count what a principal no longer uses."""
        share.counts.add(NUMBERS[pot], -count)
        self._forget_if_empty(share)

    def refusal_of_connection(self, share: Share, most: int) -> LimitExceeded:
        """The error for a principal that has as many connections as its quota allows, which is counted."""
        self.connections_refused += 1
        share.connections_refused += 1
        return LimitExceeded(f"{share.principal} has {share.clients} connections", "quota connections", most)

    def begin_replay(self, share: Share) -> None:
        """Count a replay that reads. Raises LimitExceeded if this principal has its part of what others leave."""
        most = self.limits.archive_replays_max
        own = ceil(self.limits.share_percent * (most - self.replays + share.replays) / 100)
        if self.replays < most and share.replays >= own:  # where all are taken, whoever reads the archive refuses
            raise LimitExceeded(f"{share.principal} has used up its share of the replays", "archive_replays_max", own)
        self.replays += 1
        share.replays += 1

    def end_replay(self, share: Share) -> None:
        """It reads no more."""
        self.replays -= 1
        share.replays -= 1

    def join(self, share: Share) -> tuple[Share, ...]:
        """A client is connected. Returns in which shares it counts."""
        if not share.root.counts.kept:
            self._keep(share.root)
        for part in share.parts:
            part.clients += 1
        return share.parts

    def leave(self, parts: Sequence[Share]) -> None:
        """A client that counted in these has disconnected."""
        for part in parts:
            part.clients -= 1
        self._forget_if_empty(parts[0])

    def _keep(self, share: Share) -> None:
        self._forget(share.principal)
        self._known[share.principal] = share
        share.counts.kept = True
        hide(share, self._known)

    def dropped(self, share: Share) -> None:
        """What a principal had stored in something that has ended is not stored any more."""
        self._forget_if_empty(share)

    def _forget_if_empty(self, share: Share) -> None:
        share = share.root
        if not share.counts and share.counts.kept and share.empty:
            self._forget(share.principal)
            show(share)

    def _forget(self, principal: str) -> None:
        known = self._known.pop(principal, None)
        if known is not None:
            known.counts.kept = False

    def sweep(self) -> None:
        """Log the principals whose stored bytes reached their share since the last call."""
        for account in self.ledger.pop_short():
            for share in (*self._known.values(), *self.holders):
                if share.account is account:
                    self._tell(share, SharedPot.STORED_BYTES)

    def _tell(self, share: Share, pot: SharedPot) -> None:
        log.warning(
            "share_used_up", principal=share.principal, pot=pot.value, held=share.used(pot),
            most=self.most(share, pot), setting=f"quota {pot}" if share.by_quota else pot.setting,
        )
