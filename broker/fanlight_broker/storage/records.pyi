TYPES: tuple[str, ...]
MESSAGE: int
MOVES: int
ENDED: int
SLOT: int
SLOT_SET: int
RETAINED: int
CLEARED: int
SESSION: int
SESSION_ENDED: int
SUBSCRIBED: int
UNSUBSCRIBED: int
RECEIVED: int
RELEASED: int
GROUP: int
GROUP_ENDED: int
MARK: int
QUEUE: int
QUEUE_ENDED: int
DECLARED: int
UNDECLARED: int
DELAYED: int
DELAYED_DONE: int
RETAINED_IN: int
ROUND: int
WAITING: int
IN_FLIGHT: int
ASSIGNED: int
GIVEN_UP: int
RETURNED: int
TRIED: int

class BadRecord(ValueError): ...

def read_moves(body: bytes) -> list[tuple[int, int, int, int, int]]: ...
def read_waiting(body: bytes) -> tuple[int, bool, int]: ...
def read_in_flight(body: bytes) -> tuple[int, list[tuple[int, int, int, int, bool]]]: ...
def read_ended(body: bytes) -> list[tuple[int, int, int]]: ...
