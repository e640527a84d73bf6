"""Rules as a part: a reload reads and compiles them beside the loop, and puts all of them in force at once."""

import asyncio
import sys
from pathlib import Path

import pytest

from fanlight_broker.config import Settings
from fanlight_broker.core_part import Core
from fanlight_broker.parts import PartError
from fanlight_broker.ruling.part import Ruling


def rules(count: int) -> str:
    return "".join(f'[[rules]]\ntopic = "a.{n}.*"\nwhere = "price > {n}"\ndrop = true\n' for n in range(count))


async def test_the_loop_goes_on_while_rules_are_read_and_all_come_into_force_at_once(tmp_path: Path) -> None:
    path, turns = tmp_path / "rules.toml", 0
    path.write_text(rules(300))
    settings = Settings(rules=path)
    core = Core(settings)
    publishing = core.broker.publishing
    part = Ruling(settings, core)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            assert publishing.rules.empty
            await asyncio.sleep(0)

    interval = sys.getswitchinterval()
    beside = asyncio.get_running_loop().create_task(others())
    await part.prepare(settings)
    beside.cancel()
    assert turns > 0
    assert sys.getswitchinterval() == interval
    assert publishing.rules.empty
    part.reload(settings)()
    assert publishing.rules.concern(b"a.7.x", 0)
    assert not publishing.rules.concern(b"a.300.x", 0)


async def test_a_file_with_an_error_leaves_the_rules_in_force(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(rules(2))
    settings = Settings(rules=path)
    core = Core(settings)
    part = Ruling(settings, core)
    await part.open()
    path.write_text(rules(3) + '[[rules]]\ntopic = "b"\nwhere = "price >"\ndrop = true\n')
    with pytest.raises(PartError, match="rule"):
        await part.prepare(settings)
    (source,) = part.metrics()
    assert source.counters()["rules_reloads_failed"] == 1
    assert not core.broker.publishing.rules.concern(b"a.2.x", 0)
    path.write_text(rules(3))
    await part.prepare(settings)
    part.reload(settings)()
    assert core.broker.publishing.rules.concern(b"a.2.x", 0)
