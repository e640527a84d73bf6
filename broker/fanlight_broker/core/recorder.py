"""The recorder of a broker without an archive (`ports.Recorder`)."""

from collections.abc import Callable

from fanlight_broker.core.marks import Mark
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.route import Route


class NoRecorder:
    durable = False

    def commit(self, then: Callable[[], None]) -> None:
        then()

    def note(self, mark: Mark, route: Route) -> None:
        pass  # core.Marks has it

    def undo_note(self) -> None:
        pass

    def blocker(self, route: Route) -> Outbox | None:
        return None
