from typing import Any, final

from fanlight_broker.wire.flight import Flight

@final
class JournalPosition:
    appended: int
    synced: int
    full: bool
    refusing: bool

class QueueJournal:
    def enqueued(self, flight: Flight, place: int) -> Any: ...
    def removed(self, flight: Flight, place: int) -> Any: ...
    def assigned(self, flight: Flight, origin: QueueJournal | None, place: int) -> Any: ...
    def given_up(self, flight: Flight) -> Any: ...
    def ended(self, flight: Flight) -> Any: ...
