"""What an operator does with queues, against a real broker: the SDK, the blocking client and `fanlight queue`."""

import json

import pytest

import fanlight
import fanlight.sync
from fanlight.cli import main
from tests.conftest import TestBroker
from tests.system.shell import Shell


class Command:
    """`fanlight` in this process: what it does before its verb, and as a process, is tested in test_cli.py."""

    def __init__(self, output: pytest.CaptureFixture[str]) -> None:
        self.output = output

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        try:
            code: int | str | None = main(words)
        except SystemExit as end:  # argparse's way
            code = end.code
        assert isinstance(code, int)
        return code, *self.output.readouterr()


@pytest.fixture
def command(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setenv("FANLIGHT_URL", environment["FANLIGHT_URL"])
    return Command(capsys)


def test_a_queue_with_a_selector_on_the_command_line(module_broker: TestBroker, command: Command) -> None:
    where = ("--where", "total > 1000 AND region IN ('eu', 'us')")
    assert command("queue", "add", "large", "sales.#", *where) == (0, "'large' is added\n", "")
    assert command("queue", "add", "large", "sales.#", *where) == (0, "'large' exists, declared like this\n", "")
    code, _, complaint = command("queue", "add", "large", "sales.#")
    assert code != 0
    assert "another where" in complaint
    code, _, complaint = command("queue", "add", "odd", "sales.#", "--where", "total >")
    assert code != 0
    assert "byte" in complaint
    with fanlight.sync.connect(module_broker.url) as client:
        for total in (1_000, 1_001, 2_000):
            sent = client.publish("sales.x", b"%d" % total, headers={"total": total, "region": "eu"}, receipt=True)
            assert sent == (total > 1_000)
        assert client.queues.info("large").where == "total > 1000 AND region IN ('eu', 'us')"
        assert {each.name: each.where for each in client.queues.list()}["large"] == client.queues.info("large").where
        with client.subscribe("sales.#", durable="large", ack=True, where={
            "total": [{"numeric": [">", 1000]}], "region": ["eu", "us"],
        }) as orders:  # fmt: skip
            assert [int(orders.next(timeout=60).payload) for _ in range(2)] == [1_001, 2_000]
    assert "  where total > 1000 AND region IN ('eu', 'us')\n" in command("queue", "info", "large")[1]
    assert json.loads(command("queue", "info", "large", "--json")[1])["where"].startswith("total > 1000")
    command("queue", "rm", "large", "--force")


async def test_an_operator_adds_sees_moves_and_removes_queues(module_broker: TestBroker) -> None:
    async with fanlight.connect(module_broker.url) as client:
        queues = client.queues
        options = fanlight.QueueOptions(messages_max=1_000, dead_letter="dead/billing", dead_letter_syntax="mqtt")
        assert await queues.add("billing", "orders.#", ("site/+", "mqtt"), options=options)
        assert not await queues.add("billing", ("site/+", "mqtt"), "orders.#", options=options)
        assert await queues.add("dead", "dead/#", syntax="mqtt")
        with pytest.raises(fanlight.QueueInUse) as raised:
            await queues.add("billing", "orders.#")
        assert raised.value.details == {"consumer": "billing", "option": "filter"}
        with pytest.raises(fanlight.InvalidFilter):
            await queues.add("wrong", "a/#/b", syntax="mqtt")
        with pytest.raises(fanlight.NoSuchQueue):
            await queues.purge("nobody")

        for number in range(3):
            assert await client.publish("orders.eu", b"%d" % number, headers={"n": number}, receipt=True) == 1
        info = await queues.info("billing")
        assert info.filters == (("orders.#", "amqp"), ("site/+", "mqtt"))
        assert (info.waiting, info.consumers, info.messages, info.durable) == (3, 0, 3, True)
        assert (info.options.messages_max, info.options.dead_letter, info.options.dead_letter_syntax) == (
            1_000, "dead/billing", "mqtt"
        )
        first, second = await queues.peek("billing", 2)
        assert (first.topic, first.payload, first.headers, first.attempt, first.cut) == (
            "orders.eu", b"0", {"n": 0}, 0, False
        )
        assert second.payload == b"1"

        async with client.subscribe("orders.#", durable="billing", ack=True) as orders:
            for _ in range(3):
                await (await orders.next(timeout=60)).term()
            await client.flush()
            with pytest.raises(fanlight.QueueNotEmpty) as refused:
                await queues.remove("billing")
            assert refused.value.details == {"consumer": "billing", "messages": 0, "consumers": 1}
            assert [each["client"] for each in (await queues.info("billing")).clients] == [client.info["client"]]
        assert {each.name: each.waiting for each in await queues.list()} == {"billing": 0, "dead": 3}
        assert await queues.move("dead", count=1) == (1, None)
        assert (await queues.peek("billing"))[0].headers["x-death-topic"] == "orders.eu"
        assert await queues.move("dead", "billing") == (2, None)
        assert [each.payload for each in await queues.peek("billing")] == [b"0", b"1", b"2"]
        await queues.remove("dead")
        assert await queues.purge("billing") == 3
        assert await queues.remove("billing") == 0
        assert await queues.list() == ()


def test_the_blocking_client_has_the_same(module_broker: TestBroker) -> None:
    with fanlight.sync.connect(module_broker.url) as client:
        queues = client.queues
        assert [queues.add(f"q{n:03}", f"a.{n}") for n in range(150)] == [True] * 150
        assert [each.name for each in queues.list()] == [f"q{n:03}" for n in range(150)]  # of more than one page
        client.publish("a.7", b"x" * 2_000, receipt=True)
        (message,) = queues.peek("q007", payload_bytes=10)
        assert (message.payload, message.size, message.cut) == (b"x" * 10, 2_000, True)
        assert queues.move("q007", "q008") == fanlight.Moved(1, None)
        moved = queues.move("q008")
        assert moved.messages == 1  # to a.7, where it came from
        assert queues.info("q007").waiting == 1
        assert queues.purge("q007") == 1
        assert [queues.remove(each.name, if_empty=True) for each in queues.list()] == [0] * 150
        with pytest.raises(fanlight.NoSuchQueue):
            queues.info("q007")


def test_a_queue_is_managed_from_the_command_line(command: Command, shell: Shell) -> None:
    def queue(*words: str) -> str:
        code, out, said = command("queue", *words)
        assert (code, said) == (0, "")
        return out

    add = ("add", "cli-billing", "cli.orders.#", "site/+/x", "--messages-max", "1000", "--dead-letter", "cli.dead")
    assert queue(*add, "--message-ttl", "1h") == "'cli-billing' is added\n"
    assert queue(*add) == "'cli-billing' exists, declared like this\n"
    assert queue("add", "cli-dead", "cli.dead") == "'cli-dead' is added\n"
    shell("pub", "cli.orders.eu", stdin=b"one\ntwo\n\xff\x1b[2J\n")
    heading, first, *_ = queue("ls").splitlines()
    assert heading.split() == ["NAME", "WAITING", "DELAYED", "UNACKED", "CONSUMERS", "BYTES", "OLDEST", "WHERE"]
    assert first.split()[:5] == ["cli-billing", "3", "0", "0", "0"]
    assert [json.loads(line)["waiting"] for line in queue("ls", "--json").splitlines()] == [3, 0]
    info = queue("info", "cli-billing")
    for words in (
        "'cli-billing', durable", "filter cli.orders.# (amqp)", "filter site/+/x (mqtt)", "messages_max 1,000",
        "message_ttl 3,600", "dead_letter cli.dead", "3 waiting", "0 consumers",
    ):
        assert words in info
    assert json.loads(queue("info", "cli-billing", "--json"))["filters"][1] == {"filter": "site/+/x", "syntax": "mqtt"}
    assert queue("peek", "cli-billing", "--count", "2", "--bytes", "2") == "cli.orders.eu on...\ncli.orders.eu tw...\n"
    document = json.loads(queue("peek", "cli-billing", "--json").splitlines()[2])
    assert (document["payload_base64"], document["attempt"], document["size"]) == ("/xtbMko=", 0, 5)
    assert queue("move", "cli-billing", "cli-dead", "--count", "1") == "1 message moved\n"
    assert queue("move", "cli-dead", "--topic") == "1 message moved\n"
    assert queue("purge", "cli-billing") == "3 messages dropped\n"
    assert queue("rm", "cli-dead") == "'cli-dead' is removed\n"
    command("pub", "cli.orders.eu", "x")
    assert queue("rm", "cli-billing", "--force") == "'cli-billing' is removed, with 1 message\n"
    assert queue("ls", "--json") == ""


def test_what_the_command_refuses_has_its_exit_code_and_says_what_to_do(command: Command) -> None:
    assert command("queue", "add", "cli-q", "cli.q")[0] == 0
    code, out, said = command("queue", "add", "cli-q", "cli.other")
    assert (code, out) == (1, "")
    assert said.startswith("fanlight queue: the queue 'cli-q' exists with another filter; ")
    assert command("pub", "cli.q", "x", "--receipt")[1] == "1\n"
    code, _, said = command("queue", "rm", "cli-q")
    assert code == 1
    assert "1 messages and 0 consumers" in said
    assert command("queue", "info", "cli-none") == (1, "", "fanlight queue: there is no queue 'cli-none'\n")
    assert command("queue", "move", "cli-q")[0] == 2
    assert command("queue", "move", "cli-q", "cli-q", "--topic")[0] == 2
    assert command("queue", "add", "cli-r", "cli.r", "--message-ttl", "soon")[0] == 2
    assert command("queue", "ls", "--url", "fanlight://127.0.0.1:1")[0] == 3
    assert command("queue", "rm", "cli-q", "--force")[0] == 0


def test_a_message_that_nobody_would_get_is_not_moved(command: Command) -> None:
    assert command("queue", "add", "cli-letters", "cli.letters")[0] == 0
    assert command("queue", "add", "cli-died", "cli.died", "--dead-letter", "cli.letters")[0] == 0
    headers = "--header", "x-death-topic=cli.gone", "--header", "x-death-queue=cli-died"
    assert command("pub", "cli.letters", "x", "--receipt", *headers)[0] == 0
    code, out, said = command("queue", "move", "cli-letters", "--topic")
    assert (code, out) == (1, "0 messages moved\n")
    assert said.startswith("fanlight queue: stopped: nobody is subscribed to 'cli.gone'")
    assert command("queue", "rm", "cli-letters", "--force")[1] == "'cli-letters' is removed, with 1 message\n"
    assert command("queue", "rm", "cli-died")[0] == 0


def test_the_help_of_each_command_teaches_by_example(command: Command) -> None:
    code, out, _ = command("queue", "--help")
    assert code == 0
    for name in ("add", "ls", "info", "purge", "rm", "peek", "move"):
        assert f"\n    {name} " in out
        code, own, _ = command("queue", name, "--help")
        assert code == 0
        assert f"  fanlight queue {name}" in own
    assert command("queue")[0] == 2
    assert "did you mean purge?" in command("queue", "prge", "x")[2]


async def test_a_client_has_what_it_may_subscribe_to_and_nothing_else(module_broker: TestBroker) -> None:
    async with fanlight.connect(module_broker.url) as owner, fanlight.connect(module_broker.url) as other:
        await owner.queues.add("private", f"{owner.info['inbox']}.#")
        assert [each.name for each in await owner.queues.list()] == ["private"]
        assert await other.queues.list() == ()
        with pytest.raises(fanlight.NotPermitted):
            await other.queues.purge("private")
        await owner.queues.remove("private")
