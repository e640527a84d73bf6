"""The writer thread sleeps beside entries that were sealed in the middle of a turn, and is woken at its end."""

import asyncio
import select
from pathlib import Path

from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.poller import Poller
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.records import MARK
from fanlight_broker.storage.store import Store
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import Outbox

MANY = 12  # changes in a turn: more than get a sync of their own, and more bytes than stay in one entry
SECONDS = 60.0  # after which it is clear that nobody has woken the writer


def test_what_was_sealed_between_two_frames_is_written_when_the_turn_ends(tmp_path: Path) -> None:
    ledger = Ledger(1 << 20, lambda: None)
    log = Log(tmp_path, lambda: store.progress())
    assert list(log.replay()) == []
    store = Store(log, ledger, now=lambda: 0.0, wall=lambda: 0.0, schedule=lambda seconds: None)
    loop = asyncio.new_event_loop()
    poller = Poller(loop, Flusher(ledger, lambda outbox, error: None))
    ready = select.poll()
    ready.register(log.fileno(), select.POLLIN)

    def wait() -> None:
        while log.synced < log.appended:
            assert ready.poll(SECONDS * 1000), "the writer sleeps"
            log.collect()

    store.records.append(MARK, b"first")
    store.seal()
    wait()
    outbox = Outbox(ledger, 1 << 16, "pause")
    for turn in range(1, 20):
        for _ in range(MANY):
            store.records.append(MARK, bytes(1024))
        outbox.write(b"x")  # so that there is something to flush
        poller.turn()
        assert log.appended == 1 + turn, "it was to be sealed before the sockets are written"
        store.seal()  # nothing more came
        wait()
    assert store.position.on_disk == store.position.appended
    poller.close()
    loop.close()
    log.close()
