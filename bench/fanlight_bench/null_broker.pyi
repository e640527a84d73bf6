import socket

class NullBroker:
    received: int
    delivered: int
    def __init__(self, listener: socket.socket) -> None: ...
    def run(self, seconds: float) -> None: ...
