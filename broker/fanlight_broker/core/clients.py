"""Clients: the connections that completed their handshake, from `connect` to `disconnect`."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.enforcement import Enforcement
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.flow import Flow
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.moving import follow, share_of
from fanlight_broker.core.paces import Paces
from fanlight_broker.core.permissions import NOWHERE, Asker, Origin
from fanlight_broker.core.pools import Pools
from fanlight_broker.core.quota import NO_QUOTA, HeldQuota, Holder, NoQuotas, Per, Quota, Quotas
from fanlight_broker.core.session_queues import bound_queue
from fanlight_broker.core.shares import Share, Shares, principal_of
from fanlight_broker.core.subscriber import CLOSED_CONNECTION, Client, ClientConnection, Subscriber
from fanlight_broker.core.teardown import Teardown
from fanlight_broker.core.topics import INBOX_ROOT
from fanlight_broker.core.turns import Turns
from fanlight_broker.core.will import Will
from fanlight_broker.wire.hidden import hide, show
from fanlight_broker.wire.message import Format
from fanlight_broker.wire.outbox import Outbox

log: Final = event_log.get("core")

INBOX_PREFIX: Final = f"{INBOX_ROOT.decode()}."
INBOX_BYTES: Final = 16
KICKED: Final = "kicked"  # the reason given to a connection that an operator ends
INBOXES_TOGETHER: Final = 64  # that one call of the system makes random bytes for
_tokens: Final[list[str]] = []  # for the next inboxes


class EveryClient:
    """The clients of all namespaces by their numbers, in the order in which they connected."""

    def __init__(self, shares: Shares, paces: Paces) -> None:
        self._shares, self._paces = shares, paces
        self.by_number: dict[int, Client] = {}
        self.pools = Pools()
        self.too_large = 0  # messages and wills, by a quota
        self.maximum = 0  # most that were connected at the same time
        self.connects = 0
        self.kicked = 0  # connections that an operator has ended

    def __len__(self) -> int:
        return len(self.by_number)

    def __iter__(self) -> Iterator[Client]:
        return iter(self.by_number.values())

    @property
    def refused_by_quotas(self) -> int:
        """Connections, logins and messages over a rate."""
        return self._shares.connections_refused + self._paces.logins.refused + self._paces.refused

    def add(self, client: Client) -> None:
        self.connects = client.number
        self.by_number[client.number] = client
        hide(client, client.outbox, self.by_number)
        self.maximum = max(self.maximum, len(self.by_number))


class Clients:
    """The connected clients of a namespace by their numbers, which are unique in the broker."""

    def __init__(
        self, limits: Limits, shares: Shares, flow: Flow, teardown: Teardown, enforcement: Enforcement, paces: Paces,
        everybody: EveryClient,
    ) -> None:
        self.limits = limits
        self.quotas: Quotas = NoQuotas()
        self.paces = paces
        self.everybody = everybody
        self.pools = everybody.pools
        self._shares = shares
        self._flow = flow
        self._teardown = teardown
        self._enforcement = enforcement
        self._by_number: dict[int, Client] = {}

    def __len__(self) -> int:
        return len(self._by_number)

    def get(self, number: int) -> Client | None:
        return self._by_number.get(number)

    def __contains__(self, number: int) -> bool:
        return number in self._by_number

    def __iter__(self) -> Iterator[Client]:
        """In the order in which they connected."""
        return iter(self._by_number.values())

    def connect(
        self, outbox: Outbox, connection: ClientConnection, now: float, *,
        name: str | None, user: str, agent: str, address: str, protocol: str,
        format: Format, port: int = 0, verified: bool = False, label: str = "", subscriber: Subscriber | None = None,
        origin: Origin = NOWHERE,
        limits: Mapping[str, int] | None = None,
    ) -> Client:
        """A connection has completed its handshake. Raises NotPermitted, LimitExceeded.

        subscriber  its session's, which was let in (`check`); None without a session
        limits      quotas that are known of the user alone
        """
        number = self.everybody.connects + 1
        if subscriber is None:
            name = name or f"client-{number}"
            quota, restricted = NO_QUOTA, self._enforcement.restricts(origin)
            if restricted or limits or not self.quotas.empty:
                asker = origin.asker(user if verified else "", name, protocol)
                if restricted:
                    self._enforcement.check_connect(asker)
                quota = self.quota_of(asker, limits)
            share = self._shares.of(principal_of(user, address, verified=verified, namespace=origin.namespace))
            self.check(share, quota, now)
            share = share_of(self._shares, share, quota)
            subscriber = Subscriber(
                name, user, protocol, format, share, new_inbox(), verified, label, origin=origin
            )
            hide(subscriber, origin)
        else:
            quota = self.quota_of(subscriber.asker, limits)
        client = Client(number, subscriber, agent, address, port, outbox, connection, format, now, limits)
        client.parts = self._shares.join(subscriber.share)
        if quota is not NO_QUOTA or subscriber.session is not None:  # which has been bounded before
            self._apply(client, quota, now)
        subscriber.client = client
        outbox.owner = client
        self._by_number[number] = client
        hide(self._by_number, client.parts)
        self.everybody.add(client)
        more = {"unverified_user": label} if label else {}
        if subscriber.origin.namespace:
            more["namespace"] = subscriber.origin.namespace
        log.info(
            "client_connected", connection=number, client=subscriber.name, address=address, port=port, agent=agent,
            user=user, **more,
        )
        return client

    def disconnect(self, client: Client, reason: str, now: float) -> list[Client]:
        """A client's connection is closed. Returns the publishers that were held back for it.

        If it had a session, it has left that before (`Sessions.leave`), or lost it to another connection.
        """
        if self._by_number.pop(client.number, None) is None:
            return []
        self.everybody.by_number.pop(client.number, None)
        if client.subscriber.session is None:
            self._teardown.end(client.subscriber.subscriptions)
            self._enforcement.leave(client.subscriber)
        self.paces.leave(client.outbox, now)
        self.paces.absent.discard(client)
        self.pools.leave(client.memberships)
        for each in client.parts:
            each.ended(client.outbox)
        self._shares.leave(client.parts)
        client.outbox.discard()
        client.connection = CLOSED_CONNECTION
        if client.subscriber.client is client:
            client.subscriber.client = None
        show(client, client.outbox)
        if client.subscriber.session is None:
            show(client.subscriber)
        log.info(
            "client_disconnected", connection=client.number, client=client.subscriber.name, address=client.address,
            port=client.port, reason=reason, lost=client.outbox.lost,
        )
        return self._flow.forget(client, now)

    def kick(self, client: Client, text: str, *, at_once: bool = False) -> None:
        """End a client's connection, as an operator wants. Its session, if it outlives connections, stays.

        text     for the client, where its protocol can say it
        at_once  what is unsent is lost, and counted; otherwise it has time to read it
        """
        self.everybody.kicked += 1
        if at_once:
            client.connection.cut_off(KICKED, text)
        else:
            client.connection.say_goodbye(KICKED, text)

    def quota_of(self, asker: Asker, limits: Mapping[str, int] | None) -> Quota:
        """The quota of a client's principal. limits: those that are known of the user alone, if that is the principal.
        """
        if asker.namespace:  # that is the principal
            limits = None
        if self.quotas.empty and not limits:
            return NO_QUOTA
        return self.quotas.of(asker, limits or {})

    def use_quotas(self, quotas: Quotas, turns: Turns, now: Callable[[], float]) -> None:
        """Put other quotas in force. Those who are connected get theirs some in a turn; nothing is taken from them."""
        self.quotas = quotas
        self._requote(iter(list(self)), quotas, turns, now)

    def _requote(self, rest: Iterator[Client], quotas: Quotas, turns: Turns, now: Callable[[], float]) -> None:
        for client in rest:
            if self.quotas is not quotas or client.connection is CLOSED_CONNECTION:
                continue
            self.requote(client, client.limits, now())
            if turns.over():
                turns.later(partial(self._requote, rest, quotas, turns, now))
                return

    def requote(self, client: Client, limits: Mapping[str, int] | None, now: float) -> None:
        """Give a connected client the quotas in force, as what it is now. Nothing is taken from it.

        limits  those that are known of the user alone
        """
        client.limits = limits
        quota = self.quota_of(client.subscriber.asker, limits)
        root = client.subscriber.share.root
        root.bound(quota.pots)
        root.entry = quota
        self._apply(client, quota, now)
        client.connection.use_quota(quota)

    def _apply(self, client: Client, quota: Quota, now: float) -> None:
        """Bound a client, and its session's queue, by a quota and what holds beside it."""
        follow(self._shares, client, quota)
        held, subscriber = held_by(client.subscriber.share, quota), client.subscriber
        self.paces.join(client.outbox, held, now)
        before, client.memberships = client.memberships, self.pools.join(held)
        self.pools.leave(before)
        if subscriber.session is not None:
            bound_queue(subscriber.session.window.queue, self.limits, quota)
        client.quota = quota

    def check(
        self, share: Share, quota: Quota, now: float, ending: Client | None = None, will: Will | None = None
    ) -> None:
        """Bound a principal by its quota. Raises LimitExceeded if it may have no connection more, not yet, or not this
        will.

        share   the principal's
        ending  a client that is about to end
        """
        if share.entry is not quota:
            share.bound(quota.pots)
            share.entry = quota
        if quota is NO_QUOTA:
            return
        held = held_by(share, quota)
        self.paces.logins.check(held, now)
        if will is not None:
            self.check_size(len(will.message.topic) + len(will.message.payload), quota.least("message_bytes"))
        most = quota.connections
        if most is not None and share.clients - (ending is not None and ending.subscriber.share.root is share) >= most:
            raise self._shares.refusal_of_connection(share, most)
        full = self.pools.full(held, ending.memberships if ending is not None else ())
        if full is not None:
            self._shares.connections_refused += 1
            raise full

    def check_size(self, octets: int, most: int | None) -> None:
        """Raises LimitExceeded for a message that is larger than a quota allows."""
        if most is not None and octets > most:
            self.everybody.too_large += 1
            raise LimitExceeded(f"a message of {octets} bytes", "quota message_bytes", most)

    def check_names(self, name: str | None, user: str | None) -> None:
        """Raises LimitExceeded if a name is too long."""
        most = self.limits.name_bytes_max
        if 4 * len(name or "") <= most and 4 * len(user or "") <= most:  # a character takes four bytes at most
            return
        for what, text in (("client identifier", name), ("user name", user)):
            size = len((text or "").encode(errors="surrogatepass"))
            if size > most:
                raise LimitExceeded(f"a {what} of {size} bytes", "name_bytes_max", most)


def held_by(share: Share, quota: Quota) -> list[HeldQuota]:
    """What holds for a client, the narrowest first."""
    if quota is NO_QUOTA:
        return []
    clients = [each for each in quota.also if each.holder.per is Per.CLIENT]
    others = [each for each in quota.also if each.holder.per is not Per.CLIENT]
    return [*clients, HeldQuota(Holder(Per.USER, share.principal), quota), *others]


def new_inbox() -> str:
    """A unique prefix for reply topics, in `.` spelling. Nobody can guess it."""
    if not _tokens:
        octets = secrets.token_bytes(INBOX_BYTES * INBOXES_TOGETHER)
        _tokens.extend(octets[at : at + INBOX_BYTES].hex() for at in range(0, len(octets), INBOX_BYTES))
    return f"{INBOX_PREFIX}{_tokens.pop()}"
