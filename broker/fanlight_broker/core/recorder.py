"""The recorder of a broker without an archive (`ports.Recorder`)."""

from collections.abc import Callable

from fanlight_broker.core.marks import Mark
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.receipts import Receiver
from fanlight_broker.wire.route import Route


class NoRecorder:
    receipts = None

    def commit(self, then: Callable[[], None], receiver: Receiver | None = None) -> None:
        then()

    def note(self, mark: Mark, route: Route) -> None:
        pass  # core.Marks has it

    def undo_note(self) -> None:
        pass

    def blocker(self, route: Route) -> Outbox | None:
        return None

    def crowded(self) -> Outbox | None:
        return None
