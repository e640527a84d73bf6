"""Away: the sessions whose client is not connected, by their principal and by when they expire."""

from collections.abc import Collection, Iterable, Iterator
from math import inf

from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.core.shares import Share
from fanlight_broker.core.subscriber import Session
from fanlight_broker.wire.hidden import hide


class AwaySessions:
    def __init__(self) -> None:
        self._expiring: Deadlines[Session] = Deadlines()
        self._by_share: dict[Share, dict[Session, None]] = {}

    def add(self, session: Session, at: float) -> None:
        """Its client has left; it expires at this time (inf: never)."""
        sessions = self._by_share.setdefault(session.share.root, {})
        sessions[session] = None
        hide(sessions, self._by_share)
        if at < inf:
            self._expiring.set(session, at)

    def add_all(self, found: Iterable[tuple[Session, float]]) -> None:
        """Those of before a restart, and when they expire."""
        expiring = []
        for session, at in found:
            sessions = self._by_share.get(session.share.root)
            if sessions is None:
                sessions = self._by_share[session.share.root] = {}
            sessions[session] = None
            hide(sessions)
            if at < inf:
                expiring.append((session, at))
        hide(self._by_share)
        self._expiring.set_all(expiring)

    def discard(self, session: Session) -> None:
        """Its client is back, or it has ended."""
        sessions = self._by_share.get(session.share.root)
        if sessions is None or session not in sessions:  # then it has no deadline either
            return
        self._expiring.discard(session)
        del sessions[session]
        if not sessions:
            del self._by_share[session.share.root]

    def of(self, share: Share) -> Collection[Session]:
        """Those of one principal, the one longest away first."""
        found = self._by_share.get(share.root)
        return () if found is None else found.keys()

    def overdue(self, session: Session, now: float) -> bool:
        """Has it expired, and the sweep has not reached it yet?"""
        return self._expiring.passed(session, now)

    def due(self, now: float, most: int) -> Iterator[Session]:
        """Those that have expired, `most` of them, each once, the earliest first."""
        return self._expiring.due(now, most)
