"""Room for a new session: which disconnected sessions of its principal must end.

    sessions away, the longest away first ------.--> enough: these end, and the new session begins
                                                '--> not enough: the new session is refused, and none ends

The sessions ended for one CONNECT are bounded. A share can be exceeded by far, because it is a part of what the others
leave and they may have connected later. In that case it shrinks with each CONNECT: the new session is admitted if those
that end give back at least as much as it uses.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.requests import ConnectRequest
from fanlight_broker.core.shares import Share, SharedPot, Shares
from fanlight_broker.core.subscriber import Session

log: Final = event_log.get("sessions")

ENDED_AT_ONCE: Final = 32  # sessions, about 50 µs each: the time of one turn


def room_for(
    shares: Shares, share: Share, wanted: ConnectRequest, old: Session | None, present: int, away: Iterable[Session]
) -> Sequence[Session]:
    """The sessions that must end before a share has room for a new one. Raises LimitExceeded if that is not enough.

    share    in which the new session is to count
    old      the session of the same client identifier, which will end in any case
    present  sessions that there are
    away     those of this principal whose client is not connected, the one longest away first
    """
    nbytes = wanted.nbytes
    count = freed = others = others_bytes = 0  # given back by those that end: of this share, and of others
    root = share.root
    if old is not None and old.share.root is root:
        count, freed = 1, old.charged
    elif old is not None:
        others, others_bytes = 1, old.charged
    ending: list[Session] = []
    candidates: Iterator[Session] | None = None  # mostly none is needed
    while True:
        full = present - count - others >= shares.limits.sessions_max
        many = full or not shares.fits(root, SharedPot.SESSIONS, 1 - count, others)
        large = not shares.fits(root, SharedPot.SESSIONS_BYTES, nbytes - freed, others_bytes) \
            or _too_large(shares, nbytes - freed - others_bytes)
        lacking = None
        if not (many or large):
            lacking = _lacking(shares, share, nbytes, [*ending, old] if old is not None else ending)
            if lacking is None:
                break
        if lacking is None and not full and len(ending) >= ENDED_AT_ONCE and freed >= nbytes:
            break
        if candidates is None:
            candidates = (session for session in away if session is not old)
        next_one = next(candidates, None)
        while next_one is not None and lacking is not None and lacking[0] not in next_one.share.holders:
            next_one = next(candidates, None)  # its end would give nothing back where it is needed
        if next_one is None:
            if lacking is not None:
                raise shares.refusal(*lacking)
            raise _refusal(shares, share, nbytes, full=full, many=many)
        ending.append(next_one)
        count += 1
        freed += next_one.charged
    if ending:
        _log(shares, share, wanted, ending)
    return ending


def _lacking(
    shares: Shares, share: Share, nbytes: int, ending: Sequence[Session]
) -> tuple[Share, SharedPot] | None:
    """Which holder of a quota beside the principal has no room for a new session when these have ended; for what."""
    for part in share.holders:
        given = [each.charged for each in ending if part in each.share.holders]
        if not shares.fits(part, SharedPot.SESSIONS, 1 - len(given)):
            return part, SharedPot.SESSIONS
        if not shares.fits(part, SharedPot.SESSIONS_BYTES, nbytes - sum(given)):
            return part, SharedPot.SESSIONS_BYTES
    return None


def check_growth(shares: Shares, session: Session, wanted: ConnectRequest) -> None:
    """Raises LimitExceeded if a resumed session would become too large."""
    more = wanted.nbytes - session.nbytes
    if more > 0:
        _check_whole(shares, more)
        shares.check(session.share, SharedPot.SESSIONS_BYTES, more)


def _refusal(shares: Shares, share: Share, nbytes: int, *, full: bool, many: bool) -> LimitExceeded:
    if full:
        return LimitExceeded("too many sessions", "sessions_max", shares.limits.sessions_max)
    if many:
        return shares.refusal(share, SharedPot.SESSIONS)
    _check_whole(shares, nbytes)
    return shares.refusal(share, SharedPot.SESSIONS_BYTES)


def _too_large(shares: Shares, more: int) -> bool:
    """Is the whole pot too full for this many bytes, apart from shares?"""
    pot = shares.ledger.sessions
    return more > 0 and pot.used + more > pot.limit


def _check_whole(shares: Shares, more: int) -> None:
    if _too_large(shares, more):
        pot = shares.ledger.sessions
        raise LimitExceeded(
            f"all sessions together hold {pot.used} bytes, and this one needs {more} more", "sessions_bytes_max",
            pot.limit,
        )


def _log(shares: Shares, share: Share, wanted: ConnectRequest, ending: Sequence[Session]) -> None:
    """Log one line for the sessions that end."""
    log.warning(
        "session_made_room", client=ending[0].name, sessions=len(ending), principal=share.principal,
        for_client=wanted.client_id,
        held=share.used(SharedPot.SESSIONS), most=shares.most(share, SharedPot.SESSIONS),
        held_bytes=share.used(SharedPot.SESSIONS_BYTES), most_bytes=shares.most(share, SharedPot.SESSIONS_BYTES),
    )
