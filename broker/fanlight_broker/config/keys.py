"""The settings as a table: one `Key` for each, read from the annotations of `Settings` and `Limits`.

The file, the environment, the flags, `--help`, check-config and docs/configuration.md all walk this table,
so that a setting is described once, where it is declared.
"""

import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, fields
from functools import cache
from typing import NamedTuple

from fanlight_broker.config.settings import Settings
from fanlight_broker.config.values import Secret, Value, show
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.setting import Ge, Le, NeedsRestart, NoFlag, Reason, SettingGroup, Unit

LIMITS = SettingGroup(
    "Limits",
    """\
Everything is bounded, and the reason says what happens at the bound. What is dropped or refused is counted in
`/metrics`. The declarations are in `broker/fanlight_broker/core/limits.py`.""",
)


class Key(NamedTuple):
    """One setting: its name, and everything that is declared about it."""

    name: str
    kind: type  # bool, int, float, str, Path, Secret or a StrEnum
    default: Value
    unit: str | None
    reason: str
    least: float | None
    most: float | None
    group: SettingGroup
    reloadable: bool  # SIGHUP can change it
    has_flag: bool

    @property
    def variable(self) -> str:
        return f"FANLIGHT_{self.name.upper()}"

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def secret(self) -> bool:
        return self.kind is Secret

    def show(self, value: object) -> str:
        return show(value, self.unit)

    def bounds(self) -> str:
        """Such as "1KiB to 64MiB"; "" where there are none."""
        if self.least is None or self.most is None:
            return ""
        return f"{self.show(self.least)} to {self.show(self.most)}"

    def check(self, value: Value) -> None:
        """Raise ValueError, with the bound and its reason, for a number out of bounds."""
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return
        if self.least is not None and not value >= self.least:
            raise ValueError(f"must be at least {self.show(self.least)}: {self.reason}")
        if self.most is not None and not value <= self.most:
            raise ValueError(f"must be at most {self.show(self.most)}: {self.reason}")


@cache
def keys() -> dict[str, Key]:
    """Every setting by name, in the order in which people should read them."""
    by_group: dict[SettingGroup, list[Key]] = {}
    for key in (*_keys_of(Settings, None), *_keys_of(Limits, LIMITS)):
        by_group.setdefault(key.group, []).append(key)
    return {key.name: key for members in by_group.values() for key in members}


def _keys_of(owner: type, group: SettingGroup | None) -> Iterator[Key]:
    hints = typing.get_type_hints(owner, include_extras=True)
    for field in fields(owner):
        hint = hints[field.name]
        if typing.get_origin(hint) is not typing.Annotated:
            continue  # Settings.limits, which has keys of its own
        kind, *notes = typing.get_args(hint)
        if field.default is MISSING:
            raise TypeError(f"{owner.__name__}.{field.name} has no default")
        by_type = {type(note): note for note in notes}
        yield Key(
            name=field.name,
            kind=_without_none(kind),
            default=field.default,
            unit=by_type[Unit].name if Unit in by_type else None,
            reason=by_type[Reason].text,
            least=by_type[Ge].ge if Ge in by_type else None,
            most=by_type[Le].le if Le in by_type else None,
            group=group or by_type[SettingGroup],
            reloadable=NeedsRestart not in by_type,
            has_flag=NoFlag not in by_type,
        )


def _without_none(kind: object) -> type:
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        (kind,) = (part for part in typing.get_args(kind) if part is not type(None))
    if not isinstance(kind, type):
        raise TypeError(f"{kind!r} cannot be the type of a setting")
    return kind
