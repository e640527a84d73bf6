"""Moving: what a client or session uses counts for the holders of the quotas that it has now.

A client counts in its principal's Share, or in a JointShare of its own where a quota of a group, an address or a client
identifier bounds a pot for it. Its quotas change when others are put in force, and those of a session when its client
comes back from another address or with other groups: all that it uses moves then, at once, whatever the new holders
have room for. A session's client is refused if one of them may have no session more.

What a client made before it had a JointShare (retained and delayed messages, marks, named queues and consumers) stays
its principal's alone.
"""

from collections.abc import Iterator
from functools import partial

from fanlight_broker.core.quota import Quota, Quotas
from fanlight_broker.core.share import NUMBERS
from fanlight_broker.core.shares import JointShare, Share, SharedPot, Shares
from fanlight_broker.core.subscriber import Client, Session, Subscriber
from fanlight_broker.core.subscription import group_name_of, share_bytes
from fanlight_broker.core.turns import Turns
from fanlight_broker.wire.charging import charge_window
from fanlight_broker.wire.hidden import hide


def share_of(shares: Shares, root: Share, quota: Quota) -> Share:
    """In which a new client of a principal counts. root: the principal's."""
    return shares.joint(root, quota.pot_holders) if quota.also else root


def check_return(shares: Shares, session: Session, quota: Quota) -> None:
    """Raises LimitExceeded if a holder of these quotas may have no session more, and this one is not there yet."""
    known = {each.key for each in session.share.holders}
    for key in quota.pot_holders:
        if key not in known:
            shares.check(shares.holder(key), SharedPot.SESSIONS)


def follow(shares: Shares, client: Client, quota: Quota) -> None:
    """A connected client has these quotas now: what it and its session use counts for their holders."""
    subscriber, keys = client.subscriber, quota.pot_holders
    share = subscriber.share
    if keys == tuple(each.key for each in share.holders):
        return
    if isinstance(share, JointShare):
        share.join(tuple(map(shares.holder, keys)))
    else:
        share = _joint(shares, subscriber, quota)
    parts = shares.join(share)
    shares.leave(client.parts)
    client.parts = parts
    if subscriber.session is not None:
        subscriber.session.journal.session_changed(subscriber.session)


def _joint(shares: Shares, subscriber: Subscriber, quota: Quota) -> Share:
    """Give a subscriber a share of its own, in which all counts that its principal has counted for it already."""
    share = shares.joint(subscriber.share, quota.pot_holders)
    assert isinstance(share, JointShare)
    own = subscriber.subscriptions
    nbytes = sum([share_bytes(each.filter, group_name_of(each), each.condition) for each in own])
    share.counts.adopt(NUMBERS[SharedPot.SUBSCRIPTIONS], len(own))
    share.counts.adopt(NUMBERS[SharedPot.SUBSCRIPTIONS_BYTES], nbytes)
    share.counts.adopt(NUMBERS[SharedPot.SEARCHING_FILTERS], subscriber.searching)
    session = subscriber.session
    if session is not None:
        share.counts.adopt(NUMBERS[SharedPot.SESSIONS], 1)
        share.sessions.adopt(session.charged)
        charge_window(session.window, session.unreleased, share.account, share.sessions)
        session.pot = share.sessions
    subscriber.share = share
    hide(share)
    return share


def bind_holders(shares: Shares, quotas: Quotas, turns: Turns) -> None:
    """Bound groups, addresses and clients by these quotas from now on, some in a turn."""
    shares.quota_of = quotas.held
    _bind(iter(shares.holders), shares, quotas, turns)


def _bind(rest: Iterator[Share], shares: Shares, quotas: Quotas, turns: Turns) -> None:
    for each in rest:
        if shares.quota_of != quotas.held:
            return
        shares.bind(each)
        if turns.over():
            turns.later(partial(_bind, rest, shares, quotas, turns))
            return
