"""The broker: the wiring of the core's parts. No socket, no protocol, no clock.

    clients      connections that completed their handshake        sessions     what outlives them
    subscribing  subscriptions begin and end                       publishing   messages are accepted
    router       from a topic to its subscriptions                 flow         back-pressure

Protocols call these parts with the requests of their peers; the answers are return values and errors. Messages do not
pass here one by one: a lane asks once for a topic's route, and the compiled half uses it until a subscription changes.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from fanlight_broker import event_log
from fanlight_broker.core.acknowledgements import Acknowledgements
from fanlight_broker.core.archive_selection import ArchiveSelection
from fanlight_broker.core.clients import EveryClient
from fanlight_broker.core.declarations import Declarations
from fanlight_broker.core.flow import Flow, Later, NextTurn
from fanlight_broker.core.interest import NAME as INTEREST
from fanlight_broker.core.interest import InterestTopic
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.login_turns import LoginTurns
from fanlight_broker.core.marks import Marks
from fanlight_broker.core.moving import bind_holders
from fanlight_broker.core.namespace import Common, Namespace
from fanlight_broker.core.namespace_counts import counts_of
from fanlight_broker.core.namespaces import Namespaces
from fanlight_broker.core.paces import Paces
from fanlight_broker.core.permissions import Asker, Permissions, Unrestricted
from fanlight_broker.core.ports import Journal, Recorder, SubscriptionTrail
from fanlight_broker.core.principal_rates import microseconds
from fanlight_broker.core.publishing import MessageTracer
from fanlight_broker.core.quota import Quotas
from fanlight_broker.core.replay import ReplaySource, ReplaysWithin
from fanlight_broker.core.shares import Shares
from fanlight_broker.core.standstill import Standstills
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.core.system_topics import SystemTopics
from fanlight_broker.core.turns import Clock, Turns
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Variants
from fanlight_broker.wire.synced import send_synced

log: Final = event_log.get("core")


class Broker(Namespace):
    """One broker. It is the root namespace, and has the others.

    schedule   called when something waits to be flushed; must make sure that a flush follows in this turn
    next_turn  called with a function to call after the turns of all others: a loop's `call_soon`; never at once
    later      called with a number of seconds, and a function to call after them, with the time; without it, sweeps
               do what is due
    permissions  that are in force, until others are used
    wall       seconds since 1970
    """

    def __init__(
        self, limits: Limits, schedule: Callable[[], Any], next_turn: NextTurn,
        later: Later | None = None, *, clock: Clock | None = None, cpu: Clock | None = None,
        permissions: Permissions | None = None, wall: Clock | None = None,
    ) -> None:
        ledger = Ledger(limits.outboxes_bytes_max, schedule, limits.stored_bytes_max)
        turns = Turns(ledger, next_turn, clock, cpu)
        shares = Shares(ledger, limits)
        flow = Flow(ledger, limits, turns.later, later)
        paces = Paces(
            flow, ledger, later, refusals_per_second=limits.refusals_per_second_max,
            subscribing_percent=limits.subscribing_percent,
        )
        self.everybody = EveryClient(shares, paces)
        self.namespaces = Namespaces(limits.namespaces_max, self._new_namespace, counts_of)
        self._swept_on = False  # the namespaces that a sweep has not come to wait for their turn
        self._burying = False  # `_bury` waits for its turn
        self._journal: Journal = NO_JOURNAL
        self._formats: Callable[[bytes, str], int] | None = None
        self._trail: SubscriptionTrail | None = None
        self._tracing: MessageTracer | None = None
        super().__init__("", limits, Common(
            ledger, Standstills(ledger), turns, LoginTurns(ledger, next_turn, limits.logins_percent, later),
            Variants(), shares, flow, paces,
            Marks(limits, shares, lambda number: number in self.everybody.by_number), Acknowledgements(flow),
            Declarations(), self.everybody, self.finish, self.home_of, later, wall,
        ), Unrestricted() if permissions is None else permissions)
        self.interest = InterestTopic(self.router)
        self.system_topics: SystemTopics | None = None  # set by the application, which has all counters
        self._bound(limits)

    # -- namespaces ---------------------------------------------------------------------------------------------------

    def home_of(self, asker: Asker) -> Namespace:
        """The namespace that somebody is in. Raises NotPermitted, LimitExceeded."""
        name = self.enforcement.namespace_of(asker)
        return self.namespaces.of(name) if name else self

    def named(self, name: str) -> Namespace:
        """The namespace of this name, as it was before a restart."""
        return self.namespaces.restore(name) if name else self

    def everywhere(self) -> list[Namespace]:
        """The root and the others."""
        return [self, *self.namespaces]

    def _new_namespace(self, name: str) -> Namespace:
        made = Namespace(name, self.limits, self.common, self.enforcement.permissions)
        made.enforcement.count_with(self.enforcement)
        made.clients.quotas = self.clients.quotas
        if self._journal is not NO_JOURNAL:
            made.keep_by(self._journal)
        if self._formats is not None:
            made.router.read_bodies_as(self._formats)
        made.subscribing.trail = self._trail
        if self._tracing is not None:
            made.publishing.trace_with(self._tracing)
        self._archive_in(made)
        return made

    def _home(self, owner: Subscriber) -> Namespace:
        found = self.namespaces.get(owner.namespace) if owner.namespace else self
        assert found is not None  # it is not let go while anybody is in it
        return found

    # -- what it is put together with, before the first connection ----------------------------------------------------

    def journal_to(self, journal: Journal) -> None:
        """Report what must survive a restart to this journal. Before the first session, if it is to have all."""
        self._journal = self.marks.journal = self.declarations.journal = journal
        for each in self.everywhere():
            each.keep_by(journal)
        self.acknowledgements.journal_to(journal)

    def record_to(self, recorder: Recorder) -> None:
        """Record the messages on routes with a tap. Before the first connection."""
        self.acknowledgements.record_to(recorder)

    def trail_with(self, trail: SubscriptionTrail | None) -> None:
        """Tell of each subscription that begins or ends from now on."""
        self._trail = trail
        for each in self.everywhere():
            each.subscribing.trail = trail

    def archive_with(self, selection: ArchiveSelection, source: ReplaySource) -> None:
        """Which topics go to the archive, and where archived messages are read."""
        self.router.archive_selection = selection
        self.replay_source = source
        self.queues.recording.archive_with(selection, self.queues, self.limits)
        for each in self.namespaces:  # from before a restart
            self._archive_in(each)

    def _archive_in(self, namespace: Namespace) -> None:
        selection, source = self.router.archive_selection, self.replay_source
        if selection is not None:
            namespace.router.archive_selection = selection.within(namespace.name)
            namespace.queues.recording.archive_with(
                namespace.router.archive_selection, namespace.queues, namespace.limits
            )
        if source is not None:
            namespace.replay_source = ReplaysWithin(source, namespace.name)

    def trace_with(self, tracing: MessageTracer) -> None:
        """Let this choose messages that it traces, in all namespaces."""
        self._tracing = tracing
        for each in self.everywhere():
            each.publishing.trace_with(tracing)

    def read_bodies_as(self, format_of: Callable[[bytes, str], int]) -> None:
        """What format bodies without a content type have, by topic and syntax."""
        self._formats = format_of
        for each in self.everywhere():
            each.router.read_bodies_as(format_of)

    # -- what changes -------------------------------------------------------------------------------------------------

    def position_changed(self, now: float) -> None:
        """The journal is further, has room again, or refuses: send what waited for it, let publishers go on."""
        try:
            send_synced(self.position, now)
            self.acknowledgements.release(now)
        finally:
            self.finish()

    def use(self, limits: Limits) -> None:
        """Apply new limits to clients and subscriptions created from now on."""
        ask_again = limits.subscribe_partly is not self.limits.subscribe_partly
        for each in self.everywhere():
            each.apply(limits)
        self.marks.limits = limits
        self.namespaces.most = limits.namespaces_max
        if self.system_topics is not None:
            self.system_topics.limits = limits
        self.flow.use(limits)
        self.shares.use(limits)
        self._bound(limits)
        if ask_again:
            for each in self.everywhere():
                each.ask_again()

    def _bound(self, limits: Limits) -> None:
        ledger = self.ledger
        ledger.limit = limits.outboxes_bytes_max
        ledger.stored_limit = limits.stored_bytes_max
        ledger.inboxes.limit = limits.inboxes_bytes_max
        ledger.secured.limit = limits.tls_bytes_max
        ledger.handshakes.limit = limits.handshakes_bytes_max
        ledger.sessions.limit = limits.sessions_bytes_max
        ledger.subscriptions.limit = limits.subscriptions_bytes_max
        self.login_turns.percent = limits.logins_percent
        self.paces.refusals.per_second = limits.refusals_per_second_max
        self.paces.subscribing.per_second = microseconds(limits.subscribing_percent)

    def use_permissions(self, permissions: Permissions) -> None:
        """Put other permissions in force in all namespaces (`Namespace.permit`)."""
        for each in self.everywhere():
            each.permit(permissions)

    def use_quotas(self, quotas: Quotas) -> None:
        """Put other quotas in force, for whoever is connected and whoever comes."""
        bind_holders(self.shares, quotas, self.turns)
        for each in self.everywhere():
            each.clients.use_quotas(quotas, self.turns, lambda: self.ledger.now)

    # -- the end of a turn --------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End the subscriptions that got their last message; handle overflows and failed deliveries."""
        ledger = self.ledger
        if not (ledger.ended or ledger.graves or ledger.attention or ledger.faults):
            return
        for subscription in ledger.pop_ended():
            owner: Subscriber = subscription.owner
            client = owner.client
            if subscription in owner.subscriptions:
                self._home(owner).subscribing.end(subscription)
                if client is not None:
                    client.outbox.pin()
                    client.connection.subscription_ended(subscription, "after")
                    client.outbox.evicted.pop(subscription.number, None)
        if ledger.graves and not self._burying:
            self._bury()
        self.flow.handle_overflows()
        self._close_faulty()

    def _bury(self) -> None:
        """Publish what was discarded to the dead-letter topics, as much as the turn allows; fill queues with room."""
        self._bury_some(self.ledger.now)
        while self.ledger.graves and self.ledger.clock is not None and not self.turns.over():
            self._bury_some(self.ledger.now)
        self._burying = bool(self.ledger.graves)
        if self._burying:
            self.turns.later(self._bury)

    def _bury_some(self, now: float) -> None:
        graves = self.ledger.pop_graves()
        for number, inside in enumerate(graves):
            if number and self.turns.over():
                self.ledger.graves.extend(graves[number:])
                break
            owner: Subscriber = inside.origin.owner
            home = self.namespaces.get(owner.namespace) if owner.namespace else self
            if home is not None:  # else its queue has ended
                home.queues.bury(inside, now)

    def _close_faulty(self) -> None:
        """Close the connections to which a delivery failed, each with one line in the log."""
        while self.ledger.faults:  # publishing the will of a closed connection may fail for another connection
            for outbox in self.ledger.pop_faults():
                client: Client | None = outbox.owner
                if client is None or outbox.closed:
                    continue
                log.error(
                    "delivery_failed", connection=client.number, client=client.subscriber.name, address=client.address,
                    exc_info=outbox.fault,
                )
                client.connection.say_goodbye("internal_error", "a message could not be written for this client")

    # -- by the clock -----------------------------------------------------------------------------------------------

    def sweep(self, now: float) -> None:
        """Resume publishers that were held back for long enough; end what has expired."""
        try:
            self.flow.sweep(now)
            self.paces.sweep(now)
            self.shares.sweep()
            self.due.sweep(now)
            just_over = self.standstills.just_over(now)
            if not just_over:
                self.sweep_own(now)
            if not self._swept_on:
                self._sweep_namespaces(self.namespaces, now, just_over)
            if not just_over and self.system_topics is not None:
                if (interest := self.interest.changed(now)) is not None:
                    self.system_topics.announce(INTEREST, interest, now)
                self.system_topics.sweep(now)
        finally:
            self.finish()  # wills and $SYS may have been a subscription's last message, or have filled an outbox

    def _sweep_namespaces(self, rest: Iterable[Namespace], now: float, just_over: bool) -> None:
        """The others, as many as the turn has time for, and those behind them later."""
        left = iter(rest)
        self._swept_on = False
        for each in left:
            each.due.sweep(now)
            if not just_over:
                each.sweep_own(now)
            if each.idle:
                self.namespaces.let_go(each)
            if self.turns.over():
                self._swept_on = True
                self.turns.later(partial(self._sweep_on, left, now, just_over))
                return

    def _sweep_on(self, rest: Iterable[Namespace], now: float, just_over: bool) -> None:
        self._sweep_namespaces(rest, now, just_over)
        self.finish()
