"""A broker with routing rules, and connections of both protocols, for tests."""

import json
from typing import Any

from fanlight_broker.core.limits import Limits
from fanlight_broker.core.rule_set import RuleSet
from fanlight_broker.ruling.rule_file import parse_rules
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native


class RuleWorld(mqtt.World):
    """MQTT connections, and native ones to the same broker. rules: the text of a file."""

    plain = False

    def __init__(self, rules: str = "", **limits: Any) -> None:
        super().__init__(**limits)
        self.rules: RuleSet
        if rules:
            self.use(rules)

    def use(self, rules: str) -> None:
        """Put other rules in force, as SIGHUP does."""
        limits: Limits = self.broker.limits
        self.rules = RuleSet(parse_rules(rules, "rules.toml", limits), limits, lambda: 1.7e9)
        self.broker.publishing.use_rules(self.rules)

    def native(self, *filters: str, **options: Any) -> native.Peer:
        """A native client with subscriptions, numbered from 1. options: of HELLO."""
        peer = native.Peer(self)  # type: ignore[arg-type]
        peer.say(1, 1, options)
        assert peer.next()[0] == 2
        for number, filter in enumerate(filters, 1):
            peer.say(6, None, number, filter)
        return peer


def rule(**keys: Any) -> str:
    """One rule of a file: strings, numbers, booleans, and tables of them."""
    return "[[rules]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in keys.items())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {_toml(each)}' for key, each in value.items()) + " }"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else json.dumps(value)  # a text of JSON is one of TOML


def topics(peer: native.Peer) -> list[str]:
    """Of the messages that came since the last call."""
    return [fields[2] for fields in peer.frames() if fields[0] == 4]


def arrived(peer: mqtt.Peer) -> list[tuple[str, bytes, int]]:
    """Topic, payload and QoS of the messages that came since the last call."""
    return [(each.topic, each.payload, each.qos) for each in peer.messages()]
