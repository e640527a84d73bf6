"""A native client that has used up its share of a pot: the ERROR that it gets, and that others are served."""

from typing import Any

import pytest

from fanlight_broker.core.inspection import BrokerInspection
from fanlight_broker.core.shares import SharedPot
from tests.broker.protocols.native.world import Peer, World, frame, messages, publish
from tests.captured_logs import capture_logs

MIB = 1024 * 1024
ATTACKER, VICTIM = "192.0.2.66", "192.0.2.1"


def client(world: World, address: str) -> Peer:
    peer = world.open()
    peer.address = address
    peer.send(frame(1, 1, {}))
    assert peer.next()[0] == 2
    return peer


def subscribe(peer: Peer, filters: list[str], first: int = 1) -> list[dict[str, Any] | None]:
    """One SUBSCRIBE each, in one read; for each the details of its ERROR, or None for OK."""
    peer.send(b"".join(frame(6, number, number, text) for number, text in enumerate(filters, first)))
    answers: list[dict[str, Any] | None] = []
    for fields in peer.frames():
        if fields[0] == 13:
            assert fields[2] == "limit_exceeded"
            assert fields[3].startswith("address 192.0.2.66 has used up its share of ")
        answers.append(fields[4] if fields[0] == 13 else None)
    return answers


def refusals(world: World, pot: SharedPot) -> int:
    return BrokerInspection(world.broker, lambda: world.now, dict, lambda: True).counters()[f"share_refused_{pot}"]


def served(world: World, filter: str) -> None:
    victim = client(world, VICTIM)
    assert subscribe(victim, [filter]) == [None]
    victim.send(publish("v.x.y", b"x"))
    assert messages(victim.frames()) == [(1, b"x")]


@pytest.mark.parametrize(
    ("limits", "filters", "pot", "victims"),
    [
        (
            {"subscriptions_bytes_max": MIB}, [f"{n}." + "f" * 10_000 for n in range(50)],
            SharedPot.SUBSCRIPTIONS_BYTES, "v.#",
        ),
        ({"searching_filters_max": 8}, [f"#.w{n}.#" for n in range(12)], SharedPot.SEARCHING_FILTERS, "#.x.#"),
        ({"subscriptions_max": 8}, [f"f{n}" for n in range(12)], SharedPot.SUBSCRIPTIONS, "v.#"),
    ],
    ids=["bytes", "searching", "count"],
)
def test_subscriptions_above_a_share_are_refused_one_by_one_and_others_are_served(
    limits: dict[str, int], filters: list[str], pot: SharedPot, victims: str
) -> None:
    world = World(**limits)
    attackers = [client(world, ATTACKER) for _ in range(2)]
    half = len(filters) // 2
    with capture_logs() as logs:
        answers = subscribe(attackers[0], filters[:half]) + subscribe(attackers[1], filters[half:])
    refused = [details for details in answers if details is not None]
    granted = len(answers) - len(refused)
    assert answers == [None] * granted + refused
    assert half <= granted < len(answers)
    assert {details["limit"] for details in refused} == {"subscriptions_share_percent"}
    assert not any(peer.gone for peer in attackers)
    assert refusals(world, pot) == len(refused)
    events = [entry["event"] for entry in logs if entry.get("pot", pot) == pot]
    assert events.count("share_used_up") == 1
    assert events.count("request_refused") == 1  # both have been refused by the same client
    attackers[0].send(publish("w0" if pot is SharedPot.SEARCHING_FILTERS else filters[0], b"x"))
    assert messages(attackers[0].frames()) == [(1, b"x")]
    served(world, victims)


def test_what_a_client_gives_back_another_of_the_same_address_may_take() -> None:
    world = World(searching_filters_max=8)
    first, second = client(world, ATTACKER), client(world, ATTACKER)
    assert subscribe(first, [f"#.w{n}.#" for n in range(6)]) == [None] * 6
    assert subscribe(second, ["#.x.#"]) == [{"limit": "subscriptions_share_percent", "value": 6}]
    assert subscribe(second, ["plain.#"], first=2) == [None]
    first.vanish()
    assert subscribe(second, ["#.x.#"]) == [None]
