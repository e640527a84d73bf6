"""The settings in force, by HTTP: /settings. Each with its value, where it came from, and what a change of it needs.

The sources are read again for each answer, in a thread. So a value that was changed in the file is shown beside the one
in force: it waits for a reload, or for a restart. Secrets are not shown.
"""

import asyncio
from typing import Any

from fanlight_broker.admin.view import Answer
from fanlight_broker.config import Settings, SettingsError, keys
from fanlight_broker.config.explain import values
from fanlight_broker.config.load import Loaded, load, value_of


async def settings_view(settings: Settings) -> Answer:
    return await asyncio.to_thread(_view, settings)


def _view(settings: Settings) -> Answer:
    try:
        loaded = load(settings.sources)
    except SettingsError as error:  # the file was changed since, and is wrong now
        return 200, {
            "settings": [_row(settings, None, name) for name in keys()], "warnings": [],
            "problems": [str(problem) for problem in error.problems],
        }
    return 200, {
        "settings": [_row(settings, loaded, name) for name in keys()], "warnings": list(loaded.warnings),
        "problems": [],
    }


def _row(settings: Settings, loaded: Loaded | None, name: str) -> dict[str, Any]:
    key = keys()[name]
    value = value_of(settings, name)
    waiting = value if loaded is None else value_of(loaded.settings, name)
    return {
        "name": name, "group": key.group.name, "value": None if value is None else key.show(value),
        "default": None if key.default is None else key.show(key.default),
        "place": None if loaded is None else loaded.places[name], "values": values(key).replace("`", ""),
        "needs_restart": not key.reloadable, "waiting": None if waiting == value else key.show(waiting),
        "reason": key.reason,
    }
