"""What a plan of routing rules makes of a message, as messages on routes: all of it before any of it is published."""

from typing import NamedTuple

from fanlight_broker.core.content import HEADERS_MAX
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.router import Router
from fanlight_broker.core.rules import Plan, Planned
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Owner
from fanlight_broker.wire.route import Route


class Output(NamedTuple):
    """One message to publish. wanted: of this message, where `route` is its topic's."""

    message: Message
    route: Route
    wanted: Route
    delay: float | None = None


def outputs_of(plan: Plan, message: Message, route: Route, router: Router, owner: Owner | None) -> list[Output]:
    """The messages of a plan. The first may be the very message that was published, on its own route.

    Raises LimitExceeded for a message that says too much to be changed.
    """
    outputs: list[Output] = []
    for planned in plan.outputs:
        made, on = message, route
        if not planned.own or planned.headers:
            made = rewritten(message, planned)
            on = route if planned.own else router.route(planned.topic, SYNTAXES[message.syntax])
        wanted = router.for_message(on, made, owner)
        selection = router.archive_selection
        if planned.archive and wanted.tap is None and selection is not None:
            wanted = Route(b"", wanted.targets, wanted.groups)
            wanted.tap = selection.tap
        outputs.append(Output(made, on, wanted, planned.delay))
    return outputs


def rewritten(message: Message, planned: Planned) -> Message:
    made = message.format.rewritten(message, planned.topic, planned.headers)
    if made is None:
        raise LimitExceeded("a message that a rule changes has too many headers", "headers", HEADERS_MAX)
    return made
