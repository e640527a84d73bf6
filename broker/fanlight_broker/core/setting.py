"""Notes on a setting, where it is declared: its group, and who may change it. Unit, bounds and reason are in limits.py.

A protocol declares its settings in its own folder, in settings.py. The settings of everything else are in
config/settings.py, which puts all of them together.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """The heading under which a setting is listed, and the text below it in docs/configuration.md."""

    name: str
    introduction: str = ""


@dataclass(frozen=True, slots=True)
class NeedsRestart:
    """SIGHUP cannot change this setting."""


@dataclass(frozen=True, slots=True)
class NoFlag:
    """Not on the command line, which every user of the machine can read."""


LISTENERS: Final = SettingGroup(
    "Listeners", "Where the broker listens. The default is the loopback address."
)
