"""A namespace: everything that has topics or names, once more for each tenant (docs/decisions/0024-namespaces.md).

    Broker, the root    ""      Common: ledger, turns, shares, flow, marks, acknowledgements, ...
    Namespace           "acme"    '-- the same Common; routes, sessions, queues, retained messages ... of its own

Two namespaces have no index, no table of names and no route in common, so nothing crosses. A connection is moved into
its namespace when its client is known (core/connection.py), and uses it from then on as it would use the broker.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from fanlight_broker.core.acknowledgements import Acknowledgements
from fanlight_broker.core.clients import Clients, EveryClient
from fanlight_broker.core.declarations import Declarations
from fanlight_broker.core.delayed import Delayed
from fanlight_broker.core.due import DueMessages
from fanlight_broker.core.enforcement import Enforcement
from fanlight_broker.core.flow import Flow, Later
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.login_turns import LoginTurns
from fanlight_broker.core.marks import Marks
from fanlight_broker.core.paces import Paces
from fanlight_broker.core.permissions import Permissions
from fanlight_broker.core.ports import Journal
from fanlight_broker.core.publishing import Publishing
from fanlight_broker.core.queue_jobs import QueueJobs
from fanlight_broker.core.queues import Queues
from fanlight_broker.core.rechecking import Rechecking
from fanlight_broker.core.replay import ReplaySource
from fanlight_broker.core.retained import Retained
from fanlight_broker.core.router import Router
from fanlight_broker.core.sessions import Sessions
from fanlight_broker.core.shares import Shares
from fanlight_broker.core.standstill import Standstills
from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.teardown import Teardown
from fanlight_broker.core.turns import Clock, Turns
from fanlight_broker.wire.journal import JournalPosition
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.routes import RouteCache

ROUTES_PART: Final = 16  # of the root's bounds of routes, that each other namespace has


class Common(NamedTuple):
    """What all namespaces of a broker share: what counts, bounds and measures, and knows no topic and no name."""

    ledger: Ledger
    standstills: Standstills
    turns: Turns
    login_turns: LoginTurns
    variants: Variants
    shares: Shares
    flow: Flow
    paces: Paces
    marks: Marks
    acknowledgements: Acknowledgements
    declarations: Declarations
    everybody: EveryClient
    finish: Callable[[], Any]  # the end of a turn
    home_of: "Callable[[Any], Namespace]"  # of an asker; raises NotPermitted, LimitExceeded
    later: Later | None
    wall: Clock | None


class Namespace:
    """name: one word; "" is the root's."""

    def __init__(self, name: str, limits: Limits, common: Common, permissions: Permissions) -> None:
        self.name = name
        self.common = common
        self.limits = limits
        self.ledger, self.turns, self.flow, self.paces = common.ledger, common.turns, common.flow, common.paces
        self.standstills, self.variants, self.shares = common.standstills, common.variants, common.shares
        self.marks, self.acknowledgements = common.marks, common.acknowledgements
        self.declarations, self.login_turns = common.declarations, common.login_turns
        self.finish = common.finish
        self.holders: list[Callable[[], bool]] = []  # of protocols: is something in it that the core does not know?
        part = ROUTES_PART if name else 1
        self.routes = RouteCache(max(1, limits.routes_max // part), limits.routes_bytes_max // part)
        self.router = Router(self.routes, limits, self.ledger, self.variants, self.turns, common.wall)
        self.enforcement = Enforcement(limits, self.router, self.turns, permissions, common.wall)
        self.retained = Retained(
            self.ledger, limits, self.shares, self.router.screens.of_stored, self.enforcement.may_read
        )
        self.delayed = Delayed(self.ledger, limits, self.shares, common.wall)
        self.publishing = Publishing(
            self.router, self.retained, self.marks, self.ledger, self.enforcement, self.acknowledgements, self.delayed,
            self.paces,
        )
        self.subscribing = Subscribing(limits, self.router, self.shares, self.enforcement, self.turns)
        self.teardown = Teardown(self.subscribing, self.turns)
        self.clients = Clients(
            limits, self.shares, self.flow, self.teardown, self.enforcement, self.paces, common.everybody
        )
        self.sessions = Sessions(
            limits, self.clients, self.subscribing, self.publishing, self.teardown, self.flow, self.turns
        )
        self.queues = Queues(limits, self.subscribing, self.publishing, self.turns, self.retained, common.wall)
        self.rechecking = Rechecking(
            self.enforcement, self.subscribing, self.clients, self.sessions, self.queues, self.turns, self.finish, name
        )
        self.queue_jobs = QueueJobs(self.queues, self.publishing, self.turns, self.finish)
        self.due = DueMessages(
            self.delayed, self.publishing, self.sessions, self.clients, self.turns, self.finish, common.later
        )

    def keep_by(self, journal: Journal) -> None:
        """Report what must survive a restart to this journal."""
        own = journal.within(self.name) if self.name else journal
        self.retained.journal = self.router.journal = self.delayed.journal = own
        self.sessions.journal = self.subscribing.journal = self.queues.journal = journal

    @property
    def replay_source(self) -> ReplaySource | None:
        """Of archived messages, by offset."""
        return self.queues.source

    @replay_source.setter
    def replay_source(self, source: ReplaySource | None) -> None:
        self.queues.source = source

    @property
    def position(self) -> JournalPosition:
        """Where the journal is."""
        return self.acknowledgements.position

    @property
    def idle(self) -> bool:
        """Is nothing in it any more, and nobody?"""
        return not (
            len(self.clients) or len(self.sessions) or len(self.queues) or len(self.router) or len(self.retained)
            or len(self.delayed) or len(self.teardown) or self.sessions.draining or self.queues.draining
            or self.subscribing.draining or any(held() for held in self.holders)
        )

    def apply(self, limits: Limits) -> None:
        """Apply new limits to clients and subscriptions created from now on."""
        self.limits = limits
        for part in (
            self.router, self.retained, self.subscribing, self.clients, self.sessions, self.queues, self.delayed,
            self.enforcement,
        ):
            part.limits = limits

    def permit(self, permissions: Permissions) -> None:
        """Put other permissions in force, between two messages. What they do not allow any more is ended, some in a
        turn: until it is looked at, what is in force goes on by those that allowed it.
        """
        self.enforcement.use(permissions)
        self.rechecking.begin()

    def ask_again(self, *, always: bool = False) -> None:
        """Ask the permissions in force about what is in force and was not asked about, or is to be asked otherwise.

        always  also where nobody is known to whom something may not be permitted
        """
        if always or self.enforcement.restricts_some:
            self.rechecking.begin()

    def new_outbox(self, policy: str | None = None) -> Outbox:
        """An outbox for a connection, with the requested policy if it is allowed. Raises ValueError if unknown."""
        outbox = Outbox(self.ledger, self.limits.outbox_bytes_max, self.flow.policy)
        self.flow.admit(outbox, policy)
        return outbox

    def sweep_own(self, now: float) -> None:
        """End what has expired here."""
        if self.sessions.sweep(now):
            self.turns.later(lambda: self._sweep_sessions_on(now))
        if self.queues.sweep(now):
            self.turns.later(lambda: self._sweep_queues_on(now))
        self.retained.sweep(now, self.turns.over)

    def _sweep_sessions_on(self, now: float) -> None:
        if self.sessions.sweep(now):
            self.turns.later(lambda: self._sweep_sessions_on(now))
        self.finish()

    def _sweep_queues_on(self, now: float) -> None:
        if self.queues.sweep(now):
            self.turns.later(lambda: self._sweep_queues_on(now))
        self.finish()

    def close(self) -> None:
        """It is let go: nothing is in it."""
        self.enforcement.close()
