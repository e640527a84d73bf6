"""Rules that come with somebody's credentials are not enforced, so that nobody is let in who relies on them."""

from typing import Any

import pytest

from fanlight_broker.core.identity import Identity
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V5
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native

RULES: Any = ({"effect": "deny", "actions": ["publish"], "topics": ["a/#"]},)


def let_in(peer: Any, rules: Any) -> None:
    """Its credentials need no check."""
    peer.authenticate = lambda user, password, client="": Identity("a", verified=True, permissions=rules)


@pytest.mark.parametrize("rules", [(), RULES])
def test_a_native_client_with_rules_of_its_own_is_refused(rules: Any) -> None:
    peer = native.World().open()
    let_in(peer, rules)
    peer.send(native.frame(1, 1, {}))
    answer = peer.frames()[0]
    assert (answer[0] == 13) is bool(rules)
    assert peer.protocol.closed is bool(rules)
    if rules:
        assert answer[2] == "not_permitted"
        assert "permissions of its own" in answer[3]


@pytest.mark.parametrize("rules", [(), RULES])
def test_a_client_of_mqtt_with_rules_of_its_own_is_refused(rules: Any) -> None:
    peer = mqtt.World().open(V5)
    let_in(peer, rules)
    peer.say(mqtt.connect("c", V5))
    assert peer.next().reason_code == (R.NOT_AUTHORIZED if rules else R.SUCCESS)  # type: ignore[union-attr]
    assert peer.protocol.closed is bool(rules)
