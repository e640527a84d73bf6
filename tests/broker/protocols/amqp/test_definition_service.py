"""A file of definitions with every kind of object that RabbitMQ 3.10.8 writes: in, out, and in again."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker import cli
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.definition_service import DefinitionService
from fanlight_broker.protocols.amqp.exchanges.definitions import DefinitionsError
from fanlight_broker.protocols.amqp.vhost import Vhosts
from tests.broker.protocols.amqp.world import World

EXPORT = Path(__file__).parents[3] / "data/rabbitmq/definitions_all.json"
LISTS = ("vhosts", "policies", "parameters", "exchanges", "queues", "bindings")


def made_world() -> World:
    world = World()
    world.vhosts = Vhosts({"shop"})
    world.vhosts.begin(world.broker)
    return world


def ended(steps: Generator[None, None, dict[str, Any]]) -> dict[str, Any]:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return dict(end.value)


def take(world: World, document: Any, *, dry: bool = False) -> dict[str, Any]:
    return ended(DefinitionService(world.broker, world.vhosts).take(document, dry=dry))


def drop(world: World, document: Any) -> dict[str, Any]:
    return ended(DefinitionService(world.broker, world.vhosts).drop(document))


def export(world: World, page: int = 7) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in LISTS}
    offset: int | None = 0
    while offset is not None:
        answer = ended(DefinitionService(world.broker, world.vhosts).rows(offset=offset, limit=page))
        for row in answer["rows"]:
            for name, each in row.items():
                found[name].append(each)
        offset = answer["next"]
    return found


def by_name(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_everything_that_rabbitmq_writes() -> None:
    theirs = json.loads(EXPORT.read_text())
    world = made_world()
    answer = take(world, theirs)
    assert sorted(answer["refused"]) == sorted([
        "vhost '/', parameter 'over' of 'shovel': not supported",
        "vhost 'shop', parameter 'limits' of 'vhost-limits': not supported",
        "vhost '/', queue 'history': queue 'history' in vhost '/': streams are kept in the archive, and this broker "
        "has none; the setting archive (FANLIGHT_ARCHIVE) names its folder",
        "vhost '/', binding of 'events' to 'inner': no exchange 'inner' in vhost '/'",
        "vhost '/', binding of 'inner' to 'leaves': no exchange 'inner' in vhost '/'",
    ])
    assert answer["notes"] == [
        "4 users: fanlightd user import USERS_FILE FILE",
        "5 permissions: fanlightd permissions import rabbitmq FILE",
        "1 topic_permissions: fanlightd permissions import rabbitmq FILE",
        "global parameter 'cluster_name': ignored", "vhost 'shop': its limits are not obeyed",
        "policy 'streams': not obeyed: max-age", "policy 'mirrored': not obeyed: ha-mode, queue-mode",
    ]
    ours = export(world)
    # No object is lost without being named: what is refused, and what is not there.
    objects = sum(len(theirs[name]) for name in ("policies", "exchanges", "queues", "bindings"))
    assert answer["done"] == objects + 1 - 3  # an operator policy; three are refused
    assert by_name(ours["policies"]) == by_name(theirs["policies"])
    assert ours["parameters"] == [each for each in theirs["parameters"] if each["component"] == "operator_policy"]
    kept = ("name", "vhost", "durable", "auto_delete", "arguments")
    assert by_name(ours["queues"]) == by_name([
        {key: each[key] for key in kept} for each in theirs["queues"] if each["name"] != "history"
    ])
    others = made_world()
    again = take(others, ours)
    assert (again["refused"], again["done"]) == ([], answer["done"])
    assert {name: by_name(rows) for name, rows in export(others).items()} == {
        name: by_name(rows) for name, rows in ours.items()
    }
    assert take(others, ours)["refused"] == []  # what is there and equal is no error
    queue = others.broker.queues.find("orders-quorum")
    assert (queue.policy, queue.options.deliveries_max, queue.options.messages_max) == ("quorum", 5, 500)
    exchange = others.vhosts.of(others.broker).exchanges.find("orders")
    assert exchange is not None
    assert exchange.alternate == "unrouted"


def test_a_dry_run_changes_nothing_and_names_what_is_wrong() -> None:
    world = made_world()
    before = export(world)
    rows = [
        {"vhost": "/", "name": "p", "pattern": "^(", "definition": {"max-length": 1}},
        {"vhost": "/", "name": "q", "pattern": "", "apply-to": "queues", "priority": 1, "definition": {"expires": 9}},
    ]
    queue = {"vhost": "/", "name": "n", "durable": True, "arguments": {"x-unheard-of": 1}}
    answer = take(world, {"policies": rows, "queues": [queue]}, dry=True)
    assert answer["made"] == ["vhost '/', policy 'q'", "vhost '/', queue 'n'"]
    assert [each.partition(" should")[0] for each in answer["refused"]] == ["vhost '/', policy 'p': pattern"]
    assert answer["notes"] == ["queue 'n': not obeyed: x-unheard-of"]
    assert export(world) == before


def test_an_offline_trial_says_what_an_import_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FANLIGHT_AMQP_VHOSTS", "shop")
    expected = take(made_world(), json.loads(EXPORT.read_text()))
    assert cli.main(["definitions", str(EXPORT), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == expected
    path = tmp_path / "few.json"
    path.write_text(json.dumps({"queues": [{"vhost": "/", "name": "q", "durable": True}]}))
    assert cli.main(["definitions", str(path)]) == 0
    assert capsys.readouterr().out == "make: vhost '/', queue 'q'\n1 would be made, 0 refused\n"
    path.write_text("{")
    assert cli.main(["definitions", str(path)]) == 1
    assert "it is not JSON" in capsys.readouterr().err


@pytest.mark.parametrize("document", [
    {"policies": [{"vhost": "/", "name": "p", "pattern": 5, "definition": {}}]},
    {"policies": [{"vhost": "/", "name": "p", "pattern": "", "definition": [["a"]]}]},
    {"policies": [{"vhost": "/", "name": "p", "pattern": "", "definition": [[["a"], 1]]}]},
    {"policies": [{"vhost": "/", "name": "p", "pattern": "", "definition": {}, "priority": True}]},
    {"parameters": [{"vhost": "/", "name": "p", "component": "operator_policy", "value": 1}]},
    {"policies": [{"vhost": "/", "name": "p", "pattern": "", "definition": {"ha-params": float("nan")}}]},
    {"policies": [{"vhost": "/", "name": "p", "pattern": "\ud800", "definition": {"max-length": 1}}]},
    {"policies": [{"vhost": "/", "name": "p", "pattern": "", "definition": {"max-length": 2**64}}]},
    {"policies": [{"name": "p", "pattern": "", "definition": {}}]}, {"parameters": [1]}, {"global_parameters": 1},
])  # fmt: skip
def test_what_is_no_list_of_policies(document: object) -> None:
    with pytest.raises(DefinitionsError):
        take(made_world(), document)


def test_a_vhost_is_cleared_and_let_go() -> None:
    world = made_world()
    peer, root = world.channel(vhost="shop"), world.channel()
    for each in (peer, root):
        each.declare("q", durable=True)
        each.publish("q", b"x")
        each.ask(entity.ExchangeDeclare(exchange="x", type="fanout"))
        each.ask(entity.ExchangeBind(destination="amq.fanout", source="amq.direct", routing_key="k"))
        each.ask(entity.QueueBind(queue="q", exchange="x"))
    policy = {"vhost": "shop", "name": "p", "pattern": "", "definition": {"max-length": 1}}
    take(world, {"policies": [policy]})
    answer = drop(world, {"vhosts": [{"name": "shop"}, {"name": "nowhere"}]})
    assert answer["made"] == ["vhost 'shop', policy 'p'", "vhost 'shop', queue 'q'", "vhost 'shop', exchange 'x'"]
    assert answer["refused"] == ["vhost 'nowhere': there is no such vhost"]
    shop = next(each for each in world.vhosts.present(world.broker) if each.name == "shop")
    peer.vanish()
    world.turn()
    assert shop.exchanges.is_plain
    assert shop.broker.idle
    assert root.counts("q")[0] == 1


def test_a_policy_is_removed_by_its_name() -> None:
    world = made_world()
    said = {"pattern": "", "definition": {"max-length": 1}}
    take(world, {"policies": [{"vhost": "/", "name": "p", **said}]})
    world.channel().declare("q")
    operator = {"vhost": "/", "name": "p", "component": "operator_policy", "value": said}
    assert drop(world, {"parameters": [operator]})["refused"] == ["vhost '/': there is no policy 'p'"]
    assert drop(world, {"policies": [{"vhost": "/", "name": "p", **said}]})["made"] == ["vhost '/', policy 'p'"]
    assert world.broker.queues.find("q").options.messages_max is None
