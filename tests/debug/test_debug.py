"""What a debug build sees: objects that stay, and a message that is published while another is fanned out."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fanlight_broker.protocols.mqtt.format import MQTT_3_1_1
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire import debug
from fanlight_broker.wire.batch import Batch
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.flight import Flight
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message, Variant, Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.target import Target
from fanlight_broker.wire.window import Window
from tests.broker.wire import publisher
from tests.broker.wire.publisher import Publisher, native_target

TYPES = (Batch, Flight, Message, Outbox, Queue, Route, Target, Variant, Window)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    debug.watch(*TYPES)
    gc.collect()
    before = debug.live(*TYPES)
    yield
    gc.collect()
    assert debug.live(*TYPES) == before


def test_this_is_a_debug_build() -> None:
    assert debug.ENABLED


def test_objects_are_counted_while_they_exist() -> None:
    before = debug.live(Message)["Message"]
    messages = [Message(FORMAT, b"t", 0, b"") for _ in range(100)]
    assert debug.live(Message)["Message"] == before + 100
    del messages[50:]
    assert debug.live(Message)["Message"] == before + 50


def test_batches_and_their_targets_are_gone_when_they_are_sent() -> None:
    ledger = Ledger(1 << 30, lambda: None)
    publishing, variants = Publisher(ledger), Variants()
    outboxes = [Outbox(ledger, 1 << 20, "drop_newest") for _ in range(4)]
    targets = [Target(outbox, variants.of(MQTT_3_1_1), 1) for outbox in outboxes[:2]]
    targets += [native_target(outbox, 1) for outbox in outboxes[2:]]
    publishing.route(b"t", targets)
    assert publishing.send(b"".join(publisher.publish(b"t", b"%d" % number) for number in range(500)))
    assert {target.delivered for target in targets} == {500}


@pytest.mark.parametrize("ends", ["acknowledged", "session over", "queue full", "away"])
def test_messages_of_a_session_are_gone_when_they_end(ends: str) -> None:
    ledger = Ledger(1 << 30, lambda: None)
    outbox = Outbox(ledger, 1 << 20, "pause")
    window = Window(outbox, Queue(ledger, 3 if ends == "queue full" else 100, 1 << 20))
    window.attach(outbox, 10)
    window.resume(0.0)
    if ends == "away":
        window.detach()
    target = Target(window, Variants().of(MQTT_3_1_1, 1), 1)
    route = Route(RouteCache.key_of(1, b"t"), [target], [])
    for number in range(30):
        publish(route, ledger, None, Message(MQTT_3_1_1, b"t", 1, b"%d" % number, qos=1))
    if ends == "acknowledged":
        for tag in range(1, 31):
            assert window.acknowledge(tag, 0.0)
    window.end()
    assert not window.queue.drop(100)
    assert ledger.stored == 0


REENTRY = """
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Outbox, Sink
from fanlight_broker.wire.route import Route
from tests.broker.wire.publisher import native_target

ledger = Ledger(1 << 30, lambda: None)
outbox = Outbox(ledger, 200, "drop_newest")
route = Route(b"\\0t", [native_target(outbox, 1)], [])

class Publishing(Sink):
    def flush_now(self):
        publish(route, ledger, None, Message(FORMAT, b"t", 0, b""))

outbox.sink = Publishing()
for _ in range(3):
    publish(route, ledger, None, Message(FORMAT, b"t", 0, b"", fields=b"x" * 100))
"""


def test_a_message_published_while_another_is_fanned_out_ends_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", REENTRY], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "fanlight debug: a message is published while another is fanned out" in done.stderr
