"""Pools: connections and replays of those who have a quota together, by its holder (quota.py).

The connections of a principal are in its share (shares.py), which has those that came before it had a quota, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.quota import HeldQuota, Holder, Per, Quota
from fanlight_broker.core.shares import Share, Shares


@dataclass(slots=True, eq=False)
class Pool:
    """What the clients of one holder use together."""

    holder: Holder
    clients: int = 0  # connected
    replays: int = 0  # that read


class Membership(NamedTuple):
    """A client counts in a pool, which is bounded by this quota."""

    pool: Pool
    quota: Quota


class Pools:
    """As long as anybody is in them: as many as connections, for each kind of holder."""

    def __init__(self) -> None:
        self._of: dict[Holder, Pool] = {}

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[Holder]:
        """Those whose clients are counted."""
        return iter(self._of)

    def clients(self, holder: Holder) -> int:
        """Connected ones."""
        pool = self._of.get(holder)
        return 0 if pool is None else pool.clients

    def join(self, quotas: Sequence[HeldQuota]) -> tuple[Membership, ...]:
        """A client has these quotas. It counts where one of them bounds what is counted here."""
        memberships = []
        for holder, quota in quotas:
            if quota.replays is None and (quota.connections is None or holder.per is Per.USER):
                continue
            pool = self._of.setdefault(holder, Pool(holder))
            pool.clients += 1
            memberships.append(Membership(pool, quota))
        return tuple(memberships)

    def leave(self, memberships: Sequence[Membership]) -> None:
        """It is not connected any more, or has others. A replay that goes on counts where it began."""
        for pool, _ in memberships:
            pool.clients -= 1
            if pool.clients == 0:
                del self._of[pool.holder]

    def full(self, quotas: Sequence[HeldQuota], ending: Sequence[Membership]) -> LimitExceeded | None:
        """The error for a client that would be one connection too many, of its group or another holder but its user.

        ending  of a client that is about to end
        """
        for holder, quota in quotas:
            if quota.connections is None or holder.per is Per.USER:
                continue
            present = self.clients(holder) - any(each.pool.holder == holder for each in ending)
            if present >= quota.connections:
                return LimitExceeded(f"{holder.name} has {present} connections", "quota connections", quota.connections)
        return None


class Replaying:
    """One replay of a client, in its share and in the pools of its quotas. Raises LimitExceeded."""

    def __init__(self, shares: Shares, share: Share, memberships: Sequence[Membership]) -> None:
        for pool, quota in memberships:
            if quota.replays is not None and pool.replays >= quota.replays:
                raise LimitExceeded(f"{pool.holder.name} has {pool.replays} replays", "quota replays", quota.replays)
        shares.begin_replay(share.root)
        self._shares, self._share = shares, share.root
        self._reads = True
        self._pools = [pool for pool, _ in memberships]
        for pool in self._pools:
            pool.replays += 1

    def end(self) -> None:
        """It reads no more. Calling it again does nothing."""
        if not self._reads:
            return
        self._reads = False
        self._shares.end_replay(self._share)
        for pool in self._pools:
            pool.replays -= 1
