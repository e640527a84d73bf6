from asyncio import AbstractEventLoop

from fanlight_broker.net.flush import Flusher

class Watched:
    fd: int

class Poller:
    fd: int
    count: int
    turns: int
    rounds: int
    def __init__(self, loop: AbstractEventLoop, flusher: Flusher) -> None: ...
    def close(self) -> None: ...
    def turn(self) -> None: ...
