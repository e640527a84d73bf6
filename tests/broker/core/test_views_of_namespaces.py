"""Queues and topics of all namespaces in the views and metrics, with their namespace."""

from fanlight_broker.core.inspection import BrokerInspection
from fanlight_broker.core.queue_views import FAMILIES_MAX
from tests.broker.protocols.tenants import HOMES, Tenants


def of_all(world: Tenants) -> BrokerInspection:
    return BrokerInspection(world.broker, lambda: world.now, dict, lambda: True)


def test_queues_and_topics_of_all_namespaces() -> None:
    world = Tenants()
    for count, home in enumerate(HOMES, 1):
        client = world.native(home, "c")
        client.ask(39, 5, "add", {"name": "q", "filters": [["t/#", 1]], "queue": {}})
        for _ in range(count):
            client.publish("t/a", b"x")
    inspection = of_all(world)
    queues = {view.get("namespace", ""): view for view in inspection.queues(offset=0, limit=10)}
    assert {home: view["waiting"] for home, view in queues.items()} == {home: n for n, home in enumerate(HOMES, 1)}
    depths = next(family for family in inspection.families() if family.name == "queue_depth").samples
    assert [(labels.get("namespace", ""), labels["queue"], value) for labels, value in depths] == [
        (home, "q", count) for count, home in reversed([*enumerate(HOMES, 1)])
    ]
    topics = inspection.hot_topics(limit=2)
    assert [(view.get("namespace", ""), view["messages"], view["subscribers"]) for view in topics] == [
        (home, count, 1) for count, home in reversed([*enumerate(HOMES, 1)][-2:])
    ]


def test_by_rate_a_topic_is_measured_in_its_own_namespace() -> None:
    world = Tenants()
    clients = {home: world.native(home, "c") for home in HOMES}
    first, second = HOMES[0], HOMES[1]
    for _ in range(9):
        clients[first].publish("t/a", b"x")
    inspection = of_all(world)
    inspection.hot_topics(limit=2, by_rate=True)
    world.pass_time(2)
    for _ in range(4):
        clients[second].publish("t/a", b"x")
    views = inspection.hot_topics(limit=2, by_rate=True)
    assert [(view.get("namespace", ""), view["per_second"]) for view in views] == [(second, 2), (first, 0)]


def test_queues_with_metrics_are_bounded_in_all() -> None:
    world = Tenants()
    for home in HOMES[:2]:
        client = world.native(home, "c")
        for number in range(FAMILIES_MAX // 2 + 1):
            client.ask(39, 5, "add", {"name": f"q{number}", "filters": [["t/#", 1]], "queue": {}})
    assert {len(family.samples) for family in of_all(world).families() if "queue" in family.name} == {FAMILIES_MAX}
