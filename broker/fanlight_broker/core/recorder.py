"""The recorder of a broker without an archive (`ports.Recorder`)."""

from fanlight_broker.core.marks import Mark
from fanlight_broker.wire.route import Route


class NoRecorder:
    awaited = False
    taken = 0
    roomy = True

    def hurry(self) -> None:
        pass

    def note(self, mark: Mark, route: Route) -> None:
        pass  # core.Marks has it

    def undo_note(self) -> None:
        pass

    def has_room(self, route: Route) -> bool:
        return True

    def make_room(self) -> None:
        pass


NO_RECORDER = NoRecorder()
