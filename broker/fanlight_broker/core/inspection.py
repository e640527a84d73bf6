"""Inspection: counters, gauges, and views of the clients, subscriptions and topics.

Every view is a JSON object and every list is bounded by its `limit`. Nothing here changes anything.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import chain, islice
from math import inf
from typing import Any, Final

from fanlight_broker.core import delayed, enforcement, queue_views, quota_views
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.delayed import LISTED_MAX
from fanlight_broker.core.delayed_message import DelayedEntry
from fanlight_broker.core.flow import CONSUMER
from fanlight_broker.core.hot_topics import counts_of_all, hottest
from fanlight_broker.core.marks import Mark, owner_of
from fanlight_broker.core.metrics import MetricFamily, histogram
from fanlight_broker.core.namespace_counts import all_counts, all_gauges
from fanlight_broker.core.ports import Recorded, StoreView, View
from fanlight_broker.core.quota import Per
from fanlight_broker.core.rates import Readings
from fanlight_broker.core.selectors import where_of
from fanlight_broker.core.shares import Share, SharedPot, Shares
from fanlight_broker.core.slow_consumers import seconds_held, slow_consumers
from fanlight_broker.core.subscriber import Client, Session
from fanlight_broker.core.subscription import Subscription, group_name_of, number_of
from fanlight_broker.core.topics import SYNTAXES, masked
from fanlight_broker.wire import permits
from fanlight_broker.wire.message import Message

COUNTERS: Final[Mapping[str, str]] = {
    "connections_accepted": "Connections accepted",
    "connections_closed": "Connections closed, by either side",
    "connections_refused": "Connections refused by a limit",
    "connections_refused_strangers": "Connections refused because too many of their address ended without a login",
    "connections_revoked": "Connections ended because their credentials were changed or deleted",
    "connections_expired": "Connections ended because their credentials have expired",
    "connections_kicked": "Connections ended by an operator",
    "handshakes_failed": "Connections whose handshake failed, of any kind",
    "tls_handshakes_failed": "Connections whose TLS handshake failed",
    "websocket_handshakes_failed": "Connections whose WebSocket handshake failed",
    "messages_in": "Messages accepted from publishers",
    "messages_out": "Messages written to sockets, counted once for each subscription",
    "bytes_in": "Bytes received",
    "bytes_out": "Bytes sent",
    "receipts": "Receipts sent",
    "messages_unroutable": "Messages without a matching subscription",
    "messages_filtered": "Messages with matching subscriptions of which no selector was true; delivered to nobody",
    "bodies_malformed": "Messages that selectors asked about, whose body is not what its content type says",
    "bodies_too_large": "Messages that selectors asked about, whose body has more than 64 KiB, or more than 8 levels",
    "dropped_newest": "Messages dropped on arrival because an outbox was full",
    "dropped_oldest": "Messages dropped from a full outbox to make room for newer ones",
    "dropped_credit": "Messages dropped because a subscription was out of credit and too many were waiting",
    "dropped_disconnect": "Messages dropped because their connection ended before they were sent",
    "dropped_unspellable": "Messages not delivered because the subscriber's protocol cannot represent their topic",
    "dropped_too_large": "Messages not delivered because they are larger than the subscriber accepts",
    "dropped_fault": "Messages not delivered because of an internal error; the subscriber's connection was closed",
    "dropped_queue": "Messages dropped because the queue of a session or queue group was full",
    "dropped_absent": "Messages of QoS 0 not delivered because the session's client was not connected",
    "dropped_session": "Messages dropped because their session ended before delivery or acknowledgement",
    "messages_expired": "Messages that expired before delivery",
    "messages_acknowledged": "Messages of QoS 1 and 2 acknowledged by their receivers",
    "messages_refused": "Messages that their receivers acknowledged with an error; they are discarded",
    "messages_redelivered": "Messages and PUBRELs sent again after a reconnect",
    "retained_refused": "Messages not retained because a limit was reached",
    "logins_waited": "Clients that had to wait for the turn of their address to log in (logins_percent)",
    "refusals_held": "Times a client was not read from because requests of its user or address were refused too often",
    "refusals_ended": "Connections ended because too many waited for what refusals_held and subscribing_held count",
    "subscribing_held": "Times a client was not read from because its user's or address's subscriptions took too long",
    "turns_deferred": "Pieces of work that were left for a later turn of the loop",
    "sessions_resumed": "Sessions resumed by their client",
    "sessions_taken_over": "Sessions taken over from a connection that was still open",
    "sessions_expired": "Sessions that expired while their client was not connected",
    "sessions_made_room": "Sessions ended to make room for a new one of the same user or address, whose share was full",
    "wills_published": "Wills published",
    "slow_consumers": "Connections whose outbox, or whose session's queue, was full at least once",
    "slow_consumers_disconnected": "Slow consumers disconnected by their policy, or by pause_seconds_max",
    "publishers_paused": "Times a publisher was held back: not read from until a consumer had caught up",
    "acknowledgements_held_back": "Times publishers were held back until archive, store and the ring had room",
    "publishers_held_ms": "Milliseconds that publishers were held back, in total",
    "protocol_errors": "Connections closed for protocol errors",
    "requests_refused": "Requests answered with an error that did not close the connection",
    "routes_built": "Topics whose subscribers were worked out",
    "routes_invalidated": "Routes changed or removed because a subscription changed",
    "routes_evicted": "Routes removed because the cache was full",
    "route_hits": "Messages whose route was in the cache",
    "route_misses": "Look-ups of routes that were not in the cache",
    "permits_evicted": "Permits of classes that made room for others in the table beside the routes: asked for again",
    "namespaces_begun": "Namespaces that began, because a client of one came or something of one was in the store",
    "namespaces_refused": "Clients refused because of namespaces_max",
    "publishes_repeated": "Messages dropped by deduplication: their mark had been accepted before",
    "inboxes_refused": "Connections closed, or topic aliases refused, because of inboxes_bytes_max",
    "tls_refused": "TLS connections refused or closed because of tls_bytes_max",
    "handshakes_refused": "Clients refused before they were admitted because of handshakes_bytes_max",
    "marks_forgotten": "Producers whose mark was removed because there were too many",
    "marks_refused": "Messages refused because another connected client uses their producer",
    **enforcement.COUNTERS,
    **delayed.COUNTERS,
    **queue_views.COUNTERS,
    **{
        f"share_refused_{pot}": f"Refusals because the share of a user or address was full: {pot.limit}, {pot.setting}"
        for pot in SharedPot
    },
    "subscribes": "Subscriptions created",
    "unsubscribes": "Subscriptions ended",
}

GAUGES: Final[Mapping[str, str]] = {
    "connections": "Connections that completed their handshake",
    "namespaces": "Namespaces beside the root that somebody is in, or that something is kept in",
    "subscriptions": "Subscriptions in force",
    "routes": "Routes in the cache",
    "outbox_bytes": "Bytes unsent, or waiting for credit",
    "inbox_bytes": "Bytes of incomplete frames and of topic aliases",
    "tls_bytes": "Bytes of the buffers of TLS connections, estimated",
    "handshake_bytes": "Bytes of clients not admitted yet, above handshake_frame_bytes_max each",
    "session_bytes": "Bytes of sessions: identifiers, users, wills and tables, without their messages",
    "subscription_bytes": "Bytes of subscriptions, with their filters and the filter index, estimated",
    "route_bytes": "Bytes of the routes in the cache, estimated",
    "permit_bytes": "Bytes of the table of permits of classes that routes have no room for",
    "sessions": "MQTT sessions, connected and disconnected",
    "sessions_away": "Sessions whose client is not connected",
    **queue_views.GAUGES,
    **delayed.GAUGES,
    "retained_messages": "Retained messages",
    "retained_bytes": "Bytes of retained messages, with the topic index",
    "stored_messages": "Messages in queues, in flight and retained, each counted once",
    "stored_bytes": "Bytes of messages in queues, in flight and retained, each counted once",
    "marks": "Producers whose mark is kept",
    "principals": "Users and addresses with something in a pot (see /shares)",
    "outboxes_blocking": "Outboxes that hold publishers back",
    "acknowledgements_waiting": "Acknowledgements that wait for the archive or the store",
    "publishers_held": "Publishers held back: the broker does not read from them",
    "filter_index_bytes": "Bytes of the filter index",
    "logins_waiting": "Clients that wait for the turn of their address to log in (logins_percent)",
    "turn_cpu_max_seconds": "CPU seconds of the longest turn of the loop so far",
    "standstill_seconds": "Seconds in which the process or its loop was stalled; time-outs do not count them",
    "uptime_seconds": "Seconds since the start",
}


class BrokerInspection:
    """`ports.Inspection` over a broker.

    clock  seconds, the clock of every `now`
    net    the counters of the listeners, by name
    ready  whether clients are accepted
    archive  None if messages are not archived
    """

    def __init__(
        self,
        broker: Broker,
        clock: Callable[[], float],
        net: Callable[[], Mapping[str, int]],
        ready: Callable[[], bool],
        archive: Recorded | None = None,
        store: StoreView | None = None,
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._net = net
        self._ready = ready
        self._archive, self._store = archive, store
        self._started = clock()
        self._readings = Readings()

    @property
    def ready(self) -> bool:
        return self._ready()

    def unwell(self) -> Sequence[str]:
        parts = {"archive": self._archive, "store": self._store}
        return [name for name, part in parts.items() if part is not None and part.trouble is not None]

    @property
    def durability(self) -> str:
        return self._store.promise if self._store is not None else "in memory only"

    def archive(self) -> View | None:
        return self._archive.view() if self._archive is not None else None

    def counters(self) -> Mapping[str, int]:
        broker, ledger = self._broker, self._broker.ledger
        summed = all_counts(broker.everywhere(), broker.namespaces.gone)
        known = {
            **summed,
            "connections_kicked": broker.everybody.kicked,
            "messages_in": ledger.messages_in,
            "messages_out": ledger.messages_out,
            "bytes_in": ledger.bytes_in,
            "bytes_out": ledger.bytes_out,
            "receipts": ledger.receipts,
            "messages_unroutable": ledger.unroutable,
            "permits_evicted": permits.counts()[2],
            "messages_filtered": ledger.filtered,
            "dropped_newest": ledger.dropped_newest,
            "dropped_oldest": ledger.dropped_oldest,
            "dropped_credit": ledger.dropped_credit,
            "dropped_disconnect": ledger.dropped_disconnect,
            "dropped_unspellable": ledger.dropped_unspellable,
            "dropped_too_large": ledger.dropped_too_large,
            "dropped_fault": ledger.dropped_fault,
            "dropped_queue": ledger.dropped_queue,
            "dropped_absent": ledger.dropped_absent,
            "dropped_session": ledger.dropped_session,
            "messages_expired": ledger.expired + summed["messages_expired"],
            "messages_acknowledged": ledger.acknowledged,
            "messages_refused": ledger.refused,
            "messages_redelivered": ledger.redelivered,
            "slow_consumers": broker.flow.slow_consumers,
            "slow_consumers_disconnected": broker.flow.slow_consumers_disconnected,
            "publishers_paused": broker.flow.publishers_paused,
            "acknowledgements_held_back": broker.acknowledgements.held_back,
            "publishers_held_ms": round(1000 * broker.flow.held_seconds(self._clock())),
            **broker.enforcement.counters(),
            "namespaces_begun": broker.namespaces.begun,
            "namespaces_refused": broker.namespaces.refused,
            "publishes_repeated": broker.marks.repeated,
            "inboxes_refused": ledger.inboxes.refused,
            "tls_refused": ledger.secured.refused,
            "handshakes_refused": ledger.handshakes.refused,
            "marks_forgotten": broker.marks.forgotten,
            "marks_refused": broker.marks.refused,
            "logins_waited": broker.login_turns.waited,
            "refusals_held": broker.paces.refusals.held,
            "refusals_ended": broker.paces.ended,
            "subscribing_held": broker.paces.subscribing.held,
            "turns_deferred": broker.turns.deferred,
            **{f"share_refused_{pot}": broker.shares.refusals(pot) for pot in SharedPot},
            **self._net(),
        }
        return {name: known.get(name, 0) for name in COUNTERS}

    def gauges(self) -> Mapping[str, float]:
        broker = self._broker
        return {
            **all_gauges(broker.everywhere(), self._clock()),
            "namespaces": len(broker.namespaces),
            "connections": len(broker.everybody),
            "outbox_bytes": broker.ledger.used,
            "permit_bytes": permits.counts()[1],
            "inbox_bytes": broker.ledger.inboxes.used,
            "tls_bytes": broker.ledger.secured.used,
            "handshake_bytes": broker.ledger.handshakes.used,
            "session_bytes": broker.ledger.sessions.used,
            "subscription_bytes": broker.ledger.subscriptions.used,
            "retained_bytes": broker.retained.nbytes,
            "stored_messages": broker.ledger.stored_messages,
            "stored_bytes": broker.ledger.stored,
            "marks": len(broker.marks),
            "principals": len(broker.shares),
            "outboxes_blocking": broker.ledger.pausing,
            "acknowledgements_waiting": broker.acknowledgements.waiting,
            "publishers_held": broker.flow.publishers_held,
            "logins_waiting": len(broker.login_turns),
            "turn_cpu_max_seconds": broker.ledger.turn_cpu_max,
            "standstill_seconds": broker.ledger.standstill,
            "uptime_seconds": self._clock() - self._started,
        }

    def families(self) -> Sequence[MetricFamily]:
        ledger = self._broker.ledger
        return [histogram(
            "message_recipients", "Subscriptions that each message of a publisher was delivered to",
            ledger.messages_by_recipients(), ledger.recipients,
        ), *queue_views.families(self._broker.everywhere(), self._clock())]

    def connections(self, *, offset: int, limit: int) -> Sequence[View]:
        now = self._clock()
        flow, clients = self._broker.flow, self._broker.everybody
        awake = self._broker.ledger.awake(now)
        listed = islice(clients, offset, offset + limit)
        return [connection_view(each, now, awake, held=flow.is_held_back(each)) for each in listed]

    def subscriptions(self, *, offset: int, limit: int) -> Sequence[View]:
        found = chain.from_iterable(each.router.subscriptions() for each in self._broker.everywhere())
        return [subscription_view(each) for each in islice(found, offset, offset + limit)]

    def snapshot(self, *, place: int, places: int) -> tuple[Sequence[View], int | None]:
        found, following = self._broker.router.from_place(place, places)
        return [snapshot_row(each) for each in found], following

    def sessions(self, *, offset: int, limit: int) -> Sequence[View]:
        found = chain.from_iterable(each.sessions for each in self._broker.everywhere())
        return [session_view(each) for each in islice(found, offset, offset + limit)]

    def queues(self, *, offset: int, limit: int) -> Sequence[View]:
        now = self._clock()
        found = chain.from_iterable(each.queues for each in self._broker.everywhere())
        return [queue_views.queue_view(each, now) for each in islice(found, offset, offset + limit)]

    def delayed(self, *, offset: int, limit: int) -> Sequence[View]:
        now, views = self._clock(), list[View]()
        for home in self._broker.everywhere():
            delayed, count = home.delayed, min(len(home.delayed), LISTED_MAX)
            if offset < count and len(views) < limit:
                views += [
                    delayed_view(each, delayed.message(each.id), now) | in_namespace(home.name)
                    for each in delayed.page(offset, limit - len(views))
                ]
            offset = max(0, offset - count)
        return views

    def marks(self, *, offset: int, limit: int) -> Sequence[View]:
        return [mark_view(mark) for mark in islice(self._broker.marks, offset, offset + limit)]

    def shares(self, *, limit: int) -> View:
        """How full each pot is, and the principals that hold most of any."""
        shares = self._broker.shares
        pots = {
            pot.value: {"used": shares.total(pot), "limit": shares.limit(pot), "refused": shares.refusals(pot)}
            for pot in SharedPot
        }
        homes = self._broker.everywhere()
        principals = [
            share_view(shares, each, sum(home.sessions.away_of(each) for home in homes))
            for each in shares.largest(limit)
        ]
        return {"pots": pots, "principals": principals, "total": len(shares)}

    def quotas(
        self, *, offset: int, limit: int, by: str, principal: str | None, entry: str | None, per: str
    ) -> Generator[None, None, View]:
        return quota_views.quotas_view(
            self._broker, self._clock(), offset=offset, limit=limit, by=by, principal=principal, entry=entry,
            per=Per(per),
        )

    def hot_topics(self, *, limit: int, by_rate: bool = False) -> Sequence[View]:
        homes = self._broker.everywhere()
        counts = counts_of_all(homes) if by_rate else {}
        earlier = self._readings.exchange(self._clock(), counts) if by_rate else None
        seconds, before = earlier or (0.0, {})
        views: list[View] = []
        for home, key, messages, since in hottest(homes, limit, before):
            topic, syntax, _, subscribers = home.router.topic_of(key, messages)
            view = {
                "topic": shown(masked(topic, syntax)), "syntax": syntax, "messages": messages,
                "subscribers": subscribers, **in_namespace(home.name),
            }
            if by_rate:
                # null: the first reading has nothing to be measured against.
                view["per_second"] = max(0, since) / seconds if seconds else None
            views.append(view)
        return views

    def slow_consumers(self, *, limit: int) -> Generator[None, None, Sequence[View]]:
        return slow_consumers(self._broker, self._clock(), limit)

    def explain(
        self, topic: str, *, syntax: str, client: str | None, limit: int, fields: Mapping[str, Any] | None = None,
        namespace: str = "", near: int = 0,
    ) -> Generator[None, None, View]:
        from fanlight_broker.core.explain import explain  # here: few are asked, and it needs selectors

        home = self._broker.namespaces.get(namespace) if namespace else self._broker
        if home is None:
            raise ValueError(f"there is no namespace {namespace!r} at present")
        return explain(home, topic.encode(), syntax, client, limit, fields, near)


def in_namespace(name: str) -> View:
    """What a view says of something that is not in the root."""
    return {"namespace": name} if name else {}


def mark_view(mark: Mark) -> View:
    namespace, user = owner_of(mark)
    return mark._asdict() | {"user": user} | in_namespace(namespace)


def delayed_view(delayed: DelayedEntry, message: Message | None, now: float) -> View:
    """message: None if it is on the disk."""
    view: View = {
        "id": delayed.id, "client": delayed.publisher.name, "protocol": delayed.publisher.protocol,
        "due_seconds": delayed.due - now, "bytes": delayed.nbytes,
    }
    if message is None:
        return view | {"topic": None, "syntax": None, "qos": None, "retain": None}
    syntax = SYNTAXES[message.syntax]
    topic = shown(masked(message.topic, syntax))
    return view | {"topic": topic, "syntax": syntax, "qos": message.qos, "retain": message.retain}


def connection_view(client: Client, now: float, awake: float, *, held: bool) -> View:
    outbox, subscriber = client.outbox, client.subscriber
    return {
        "connection": client.number, "client": subscriber.name, "user": subscriber.user,
        "verified": subscriber.verified, "unverified_user": subscriber.label, "agent": client.agent,
        "address": client.address, "port": client.port,
        "protocol": subscriber.protocol,
        "connected_seconds": round(now - client.connected_at, 3),
        "subscriptions": len(subscriber.subscriptions), "policy": outbox.policy,
        "outbox_bytes": outbox.size + outbox.awaiting_credit,
        "outbox_limit": outbox.limit, "messages_sent": outbox.sent, "messages_dropped": outbox.dropped,
        "blocking": outbox.pausing, "held": held,
        "held_seconds": round(
            sum(seconds_held(client, kind, awake) for kind in client.hold_times if kind != CONSUMER), 3
        ),
        **in_namespace(subscriber.namespace),
    }


def session_view(session: Session) -> View:
    window, queue = session.window, session.window.queue
    return {
        "client": session.name, "user": session.subscriber.user, "connected": session.connected,
        "connection": session.client.number if session.client is not None else None,
        "protocol": session.subscriber.protocol, "expiry_seconds": None if session.expiry == inf else session.expiry,
        "subscriptions": len(session.subscriptions), "in_flight": window.in_flight, "receive_max": window.inflight_max,
        "queued": len(queue), "queued_bytes": queue.nbytes, "dropped": queue.dropped, "expired": queue.expired,
        "unreleased": len(session.unreleased), "will": session.will is not None,
        **in_namespace(session.subscriber.namespace),
    }


def share_view(shares: Shares, share: Share, away: int) -> View:
    pots = {
        pot.value: {"held": share.used(pot), "most": shares.most(share, pot), "refused": share.refusals(pot)}
        for pot in SharedPot
    }
    return {"principal": share.principal, "clients": share.clients, "away": away, "pots": pots}


def subscription_view(subscription: Subscription) -> View:
    syntax = SYNTAXES[subscription.syntax_number]
    return {
        "connection": number_of(subscription), "client": subscription.owner.name,
        "subscription": subscription.number, "filter": shown(masked(subscription.filter, syntax)),
        "syntax": syntax, "group": group_name_of(subscription),
        "no_echo": subscription.no_echo,
        "qos": subscription.variant.qos, "where": where_of(subscription.condition),
        "credit": None if subscription.credit < 0 else subscription.credit, "waiting": subscription.waiting_messages,
        "delivered": subscription.delivered, "dropped": subscription.dropped,
        **in_namespace(subscription.owner.namespace),
    }


def snapshot_row(subscription: Subscription) -> View:
    """A row of a snapshot: what decides who gets a message, exactly as it was requested."""
    owner, syntax = subscription.owner, SYNTAXES[subscription.syntax_number]
    selector = {} if subscription.condition is None else {"where": subscription.condition.where}
    return {
        "id": subscription.id, "client": owner.name, "user": owner.user,
        # Not as `shown`: a program compares it. Invalid UTF-8 becomes lone surrogates, which JSON can represent.
        "filter": masked(subscription.filter, syntax).decode("utf-8", "surrogateescape"),
        "syntax": syntax, "group": group_name_of(subscription),
        "qos": subscription.variant.qos, "no_echo": subscription.no_echo,
        "session": subscription.window is not None,  # then what several of its filters match comes once: overlap.py
        **selector,
    }


def shown(text: bytes) -> str:
    """A topic or filter for display: invalid UTF-8 as backslash escapes."""
    return text.decode("utf-8", "backslashreplace")
