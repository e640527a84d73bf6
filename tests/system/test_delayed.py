"""Delayed messages, a real broker, the SDK and the command line: the broker's own timer routes them."""

import fanlight
import fanlight.sync
from tests.conftest import TestBroker
from tests.system.shell import Shell
from tests.system.test_archive import get


async def test_a_delayed_message_arrives_by_itself_and_one_that_is_not_due_can_be_looked_at(broker: TestBroker) -> None:
    async with fanlight.connect(broker.url, name="shop") as client:
        messages = await client.subscribe("orders.#")
        far = await client.publish("orders.far", b"x", receipt=True, delay=3_600)
        soon = await client.publish("orders.soon", b"y", receipt=True, delay=0.05)
        assert [(each, each.delayed) for each in (far, soon)] == [(0, True), (0, True)]
        assert (await messages.next(timeout=60)).topic == "orders.soon"
        (view,) = get(broker, "/delayed")["delayed"]
        assert (view["topic"], view["client"], view["protocol"]) == ("orders.far", "shop", "native")
        assert 3_500 < view["due_seconds"] <= 3_600
    stats = get(broker, "/stats")
    assert (stats["delayed_messages"], stats["delayed_accepted"], stats["delayed_delivered"]) == (1, 2, 1)


def test_the_command_line_says_that_it_is_delayed(shell: Shell) -> None:
    code, out, _ = shell("pub", "cli.later", "x", "--delay", "3600", "--receipt")
    assert (code, out.split()[0], out.split()[1].isdigit()) == (0, b"delayed", True)
    assert shell("pub", "cli.later", "x", "--delay", "3600") == (0, b"", "")
    code, _, said = shell("pub", "cli.later", "x", "--delay", "90000000", "--receipt")
    assert (code, "delay_seconds_max" in said) == (1, True)
    assert shell("pub", "cli.later", "x", "--delay", "-1")[0] == 2


def test_a_delayed_message_is_listed_and_cancelled(module_broker: TestBroker, shell: Shell) -> None:
    """Others may wait in this broker, too."""
    with fanlight.sync.connect(module_broker.url, name="shop") as client:
        before = client.delayed().count
        receipt = client.publish("reminders.far", b"x", receipt=True, delay=7_300)
        other = client.publish("reminders.near", b"y", receipt=True, delay=1_810)
        found = client.delayed()
        ids = [each.id for each in found.messages if each.topic.startswith("reminders.")]
        assert (found.count, ids) == (before + 2, [other.id, receipt.id])
        code, out, _ = shell("delayed", "ls")
        assert code == 0
        lines = out.decode().splitlines()
        assert [line for line in lines if "reminders." in line] == [
            f"{other.id}  30m  shop  reminders.near y", f"{receipt.id}  2h  shop  reminders.far x",
        ]  # fmt: skip
        assert lines[-1].startswith(f"{before + 2} messages delayed, the next is due in ")
        assert client.cancel(receipt)
        assert shell("delayed", "rm", str(other.id)) == (0, f"{other.id} is cancelled\n".encode(), "")
        assert shell("delayed", "rm", str(other.id))[0] == 1
        assert client.delayed().count == before
    assert get(module_broker, "/stats")["delayed_cancelled"] >= 2
