from matchcore.selecting import Selecting

__all__ = ["ScreenRows"]

class ScreenRows:
    """Asks the screens of many rows: for match_many."""

    def __init__(self, selecting: Selecting, fields: object, count: int) -> None: ...
