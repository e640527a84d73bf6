"""`fanlightd definitions FILE`: what an import of a file of definitions would make, refuse and ignore.

It is imported into a broker of its own, with the settings and without a port, a store and clients: so what it says is
what the import does to an empty broker.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fanlight_broker.assembly import PROTOCOLS
from fanlight_broker.config import Exit, Settings
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.protocol_part import PluginError

IMPORT = "/definitions/import"


def try_definitions(file: Path, settings: Settings, *, as_json: bool) -> int:
    try:
        body = file.read_bytes()
        answer = _imported(body, settings)
    except (FanlightError, PluginError, OSError) as error:
        print(f"fanlightd: {file}: {error}", file=sys.stderr)
        return Exit.FAILED
    if as_json:
        print(json.dumps(answer, indent=1))
    else:
        for title, name in (("make", "made"), ("ignore", "notes"), ("refuse", "refused")):
            for each in answer[name]:
                print(f"{title}: {each}")
        print(f"{answer['done']} would be made, {len(answer['refused'])} refused")
    return Exit.FAILED if answer["refused"] else Exit.OK


def _imported(body: bytes, settings: Settings) -> dict[str, Any]:
    """Raises FanlightError, PluginError."""
    broker = Broker(settings.limits, schedule=lambda: None, next_turn=_at_once)
    for kind in PROTOCOLS:
        part = kind(settings)
        act = part.actions().get(IMPORT)
        if act is not None:
            part.begin(broker)
            steps = act(body)
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    return dict(end.value)
    raise FanlightError("no protocol of this broker has definitions")


def _at_once(go_on: Callable[[], Any]) -> None:
    go_on()
