"""Notes on a setting, where it is declared: its unit, bounds and reason, its group, and who may change it.

A protocol declares its settings in its own folder, in settings.py. The limits are in limits.py, the settings of
everything else in config/settings.py, which puts all of them together.

The notes are plain classes: they are made and read once, at the start, and a dataclass takes half a millisecond of it.
"""

from typing import Final


class Unit:
    """The unit of a setting, as shown to users."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Reason:
    """What a setting bounds, and the reason for its default."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Ge:
    """The least value of a number."""

    __slots__ = ("ge",)

    def __init__(self, ge: float) -> None:
        self.ge = ge


class Le:
    """The greatest value of a number."""

    __slots__ = ("le",)

    def __init__(self, le: float) -> None:
        self.le = le


class SettingGroup:
    """The heading under which a setting is listed, and the text below it in docs/configuration.md."""

    __slots__ = ("introduction", "name")

    def __init__(self, name: str, introduction: str = "") -> None:
        self.name = name
        self.introduction = introduction


class NeedsRestart:
    """SIGHUP cannot change this setting."""

    __slots__ = ()


class NoFlag:
    """Not on the command line, which every user of the machine can read."""

    __slots__ = ()


LISTENERS: Final = SettingGroup(
    "Listeners", "Where the broker listens. The default is the loopback address."
)
