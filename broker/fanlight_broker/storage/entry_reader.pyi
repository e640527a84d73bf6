class EntryCursor:
    sequence: int
    number: int
    time: int
    position: int
    type: int
    size: int
    def records(self) -> list[tuple[int, bytes]]: ...

class EntryReader(EntryCursor):
    def seek(self, position: int) -> int: ...
    def next_entry(self) -> bool: ...
