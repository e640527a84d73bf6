"""Real brokers: each that is installed keeps messages for a consumer that is away, and delivers each once."""

from pathlib import Path

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.durable.brokers import KEEPERS, Keeper
from fanlight_bench.durable.links import Crew
from fanlight_bench.peers.peer import Up

pytestmark = pytest.mark.release

LONG = 60.0  # seconds within which a broker has stored or delivered a few messages
MESSAGES = 300
# One start for the two kinds of queue: RabbitMQ takes its time.
BROKERS = list({type(keeper.peer): keeper.peer for keeper in KEEPERS.values() if keeper.there()}.values())


@pytest.mark.parametrize("peer", BROKERS, ids=lambda peer: peer.name)
def test_a_broker_keeps_messages_and_delivers_each_once(peer: object, tmp_path: Path) -> None:
    keepers = [keeper for keeper in KEEPERS.values() if keeper.peer is peer]
    with keepers[0].peer.start(tmp_path, None) as up:
        for keeper in keepers:
            _while_away(keeper, up)
            _while_there(keeper, up)


def _while_away(keeper: Keeper, up: Up) -> None:
    crew = Crew(
        keeper.courier, up.ports[keeper.scheme], f"away-{keeper.name.split('.')[0]}", publishers=3, window=7,
        consumers=range(4), topics=4, behind=0,
    )  # fmt: skip
    crew.prepare()
    with crew.there(publishers=True, consumers=[]) as load:
        load.run(LONG, MESSAGES)
    with crew.there(publishers=False, consumers=range(4)) as load:
        assert load.drain(LONG, MESSAGES), load.complaint()
    assert (crew.load.acknowledged, crew.load.right, crew.faults()) == (MESSAGES, MESSAGES, {})


def _while_there(keeper: Keeper, up: Up) -> None:
    port, prefix = up.ports[keeper.scheme], f"there-{keeper.name.split('.')[0]}"
    crew = Crew(keeper.courier, port, prefix, publishers=2, window=5)
    crew.prepare()
    with crew.there(publishers=True, consumers=[0]) as load:
        load.run(LONG, MESSAGES)
        assert load.drain(LONG, load.published), load.complaint()
    assert (crew.load.right, crew.faults()) == (crew.load.published, {})
