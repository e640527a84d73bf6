"""The broker: the wiring of the core's parts. No socket, no protocol, no clock.

    clients      connections that completed their handshake        sessions     what outlives them
    subscribing  subscriptions begin and end                       publishing   messages are accepted
    router       from a topic to its subscriptions                 flow         back-pressure

Protocols call these parts with the requests of their peers; the answers are return values and errors. Messages do not
pass here one by one: a lane asks once for a topic's route, and the compiled half uses it until a subscription changes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from fanlight_broker import event_log
from fanlight_broker.core.acknowledgements import Acknowledgements
from fanlight_broker.core.clients import Clients
from fanlight_broker.core.delayed import Delayed
from fanlight_broker.core.due import DueMessages
from fanlight_broker.core.enforcement import Enforcement
from fanlight_broker.core.flow import Flow, Later, NextTurn
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.marks import Marks
from fanlight_broker.core.paces import Paces
from fanlight_broker.core.permissions import Permissions, Unrestricted
from fanlight_broker.core.ports import Journal, Recorder
from fanlight_broker.core.publishing import Publishing
from fanlight_broker.core.queue_jobs import QueueJobs
from fanlight_broker.core.queues import Queues
from fanlight_broker.core.quota import Quotas
from fanlight_broker.core.rechecking import Rechecking
from fanlight_broker.core.replay import ReplaySource
from fanlight_broker.core.retained import Retained
from fanlight_broker.core.router import Router
from fanlight_broker.core.sessions import Sessions
from fanlight_broker.core.shares import Shares
from fanlight_broker.core.standstill import Standstills
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.system_topics import SystemTopics
from fanlight_broker.core.teardown import Teardown
from fanlight_broker.core.turns import Clock, Turns
from fanlight_broker.wire.journal import JournalPosition
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.synced import send_synced

log: Final = event_log.get("core")


class Broker:
    """One broker.

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
        self.limits = limits
        self.ledger = Ledger(limits.outboxes_bytes_max, schedule, limits.stored_bytes_max)
        self.routes = RouteCache(limits.routes_max, limits.routes_bytes_max)
        self.standstills = Standstills(self.ledger)
        self.turns = Turns(self.ledger, next_turn, clock, cpu)
        self.variants = Variants()
        self.shares = Shares(self.ledger, limits)
        self.router = Router(self.routes, limits, self.ledger, self.variants, self.turns, wall)
        self.flow = Flow(self.ledger, limits, self.turns.later, later)
        in_force = Unrestricted() if permissions is None else permissions
        self.enforcement = Enforcement(limits, self.router, self.turns, in_force, wall)
        self.paces = Paces(self.flow, self.ledger, later)
        self.retained = Retained(
            self.ledger, limits, self.shares, self.router.screens.of_stored, self.enforcement.may_read
        )
        self.marks = Marks(limits, self.shares, lambda number: number in self.clients)
        self.acknowledgements = Acknowledgements(self.flow)
        self.delayed = Delayed(self.ledger, limits, self.shares, wall)
        self.publishing = Publishing(
            self.router, self.retained, self.marks, self.ledger, self.enforcement, self.acknowledgements, self.delayed,
            self.paces,
        )
        self.subscribing = Subscribing(limits, self.router, self.shares, self.enforcement, self.turns)
        self.teardown = Teardown(self.subscribing, self.turns)
        self.clients = Clients(limits, self.shares, self.flow, self.teardown, self.enforcement, self.paces)
        self.sessions = Sessions(
            limits, self.clients, self.subscribing, self.publishing, self.teardown, self.flow, self.turns
        )
        self.queues = Queues(limits, self.subscribing, self.publishing, self.turns, self.retained, wall)
        self._rechecking = Rechecking(
            self.enforcement, self.subscribing, self.clients, self.sessions, self.queues, self.turns, self.finish
        )
        self.queue_jobs = QueueJobs(self.queues, self.publishing, self.turns, self.finish)
        self.due = DueMessages(
            self.delayed, self.publishing, self.sessions, self.clients, self.turns, self.finish, later
        )
        self.system_topics: SystemTopics | None = None  # set by the application, which has all counters
        self._bound(limits)

    def journal_to(self, journal: Journal) -> None:
        """Report what must survive a restart to this journal. Before the first session, if it is to have all."""
        self.sessions.journal = self.subscribing.journal = self.retained.journal = self.router.journal = journal
        self.queues.journal = journal
        self.marks.journal = self.delayed.journal = journal
        self.acknowledgements.journal_to(journal)

    @property
    def replay_source(self) -> ReplaySource | None:
        """Of archived messages, by offset."""
        return self.queues.source

    @replay_source.setter
    def replay_source(self, source: ReplaySource | None) -> None:
        self.queues.source = source

    def record_to(self, recorder: Recorder) -> None:
        """Record the messages on routes with a tap. Before the first connection."""
        self.acknowledgements.record_to(recorder)

    @property
    def position(self) -> JournalPosition:
        """Where the journal is."""
        return self.acknowledgements.position

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
        self.limits = limits
        for part in (
            self.router, self.retained, self.marks, self.subscribing, self.clients, self.sessions, self.queues,
            self.delayed, self.enforcement,
        ):
            part.limits = limits
        if self.system_topics is not None:
            self.system_topics.limits = limits
        self.flow.use(limits)
        self.shares.use(limits)
        self._bound(limits)
        if ask_again:
            self.ask_again()

    def _bound(self, limits: Limits) -> None:
        ledger = self.ledger
        ledger.limit = limits.outboxes_bytes_max
        ledger.stored_limit = limits.stored_bytes_max
        ledger.inboxes.limit = limits.inboxes_bytes_max
        ledger.secured.limit = limits.tls_bytes_max
        ledger.handshakes.limit = limits.handshakes_bytes_max
        ledger.sessions.limit = limits.sessions_bytes_max
        ledger.subscriptions.limit = limits.subscriptions_bytes_max

    def use_permissions(self, permissions: Permissions) -> None:
        """Put other permissions in force, between two messages. What they do not allow any more is ended, some in a
        turn: until it is looked at, what is in force goes on by those that allowed it.
        """
        was_restricted = self.enforcement.restricted
        self.enforcement.use(permissions)
        self._rechecking.begin(unasked=not was_restricted and self.enforcement.restricted)

    def use_quotas(self, quotas: Quotas) -> None:
        """Put other quotas in force, for whoever is connected and whoever comes."""
        self.clients.use_quotas(quotas, self.turns, lambda: self.ledger.now)

    def ask_again(self, *, always: bool = False) -> None:
        """Ask the permissions in force about what is in force and was not asked about, or is to be asked otherwise.

        always  also where nobody is known to whom something may not be permitted
        """
        if always or self.enforcement.restricts_some:
            self._rechecking.begin()

    def new_outbox(self, policy: str | None = None) -> Outbox:
        """An outbox for a connection, with the requested policy if it is allowed. Raises ValueError if unknown."""
        outbox = Outbox(self.ledger, self.limits.outbox_bytes_max, self.flow.policy)
        self.flow.admit(outbox, policy)
        return outbox

    # -- the end of a turn -----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End the subscriptions that got their last message; handle overflows and failed deliveries."""
        ledger = self.ledger
        if not (ledger.ended or ledger.graves or ledger.attention or ledger.faults):
            return
        for subscription in ledger.pop_ended():
            owner: Subscriber = subscription.owner
            client = owner.client
            if subscription in owner.subscriptions:
                self.subscribing.end(subscription)
                if client is not None:
                    client.outbox.pin()
                    client.connection.subscription_ended(subscription, "after")
                    client.outbox.evicted.pop(subscription.number, None)
        if ledger.graves:
            self.queues.bury(ledger.now)
        self.flow.handle_overflows()
        self._close_faulty()

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
            if self.standstills.just_over(now):
                return
            if self.sessions.sweep(now):
                self.turns.later(partial(self._sweep_on, now))
            if self.queues.sweep(now):
                self.turns.later(partial(self._sweep_queues_on, now))
            self.retained.sweep(now, self.turns.over)
            if self.system_topics is not None:
                self.system_topics.sweep(now)
        finally:
            self.finish()  # wills and $SYS may have been a subscription's last message, or have filled an outbox

    def _sweep_on(self, now: float) -> None:
        if self.sessions.sweep(now):
            self.turns.later(partial(self._sweep_on, now))
        self.finish()

    def _sweep_queues_on(self, now: float) -> None:
        if self.queues.sweep(now):
            self.turns.later(partial(self._sweep_queues_on, now))
        self.finish()
