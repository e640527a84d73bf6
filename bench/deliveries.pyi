HEADER_BYTES: int

class Deliveries:
    payload_bytes: int
    published: int
    expected: int
    received: int
    unique: int
    repeated: int
    reordered: int
    misrouted: int
    damaged: int
    def __init__(self, payload_bytes: int) -> None: ...
