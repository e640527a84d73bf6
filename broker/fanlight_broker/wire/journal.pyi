from typing import Any, final

from fanlight_broker.wire.flight import Flight

@final
class JournalPosition:
    appended: int
    synced: int
    written: int
    on_disk: int
    full: bool
    refusing: bool

class QueueJournal:
    def enqueued(self, flight: Flight) -> Any: ...
    def returned(self, flight: Flight) -> Any: ...
    def removed(self, flight: Flight) -> Any: ...
    def assigned(self, flight: Flight, origin: QueueJournal) -> Any: ...
    def given_up(self, flight: Flight, origin: QueueJournal) -> Any: ...
    def ended(self, flight: Flight, origin: QueueJournal) -> Any: ...
