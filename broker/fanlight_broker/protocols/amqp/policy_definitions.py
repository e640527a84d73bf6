"""Policies in RabbitMQ's file of definitions: the list `policies`, and operator policies in the list `parameters`.

RabbitMQ writes the definition of an operator policy as an array of pairs, and reads it as an object as well.
Source: files that RabbitMQ 3.10.8 has written (tests/data/rabbitmq).
"""

from typing import Any, Final

from fanlight_broker.protocols.amqp.exchanges.definitions import DefinitionsError, Item, check_value, items
from fanlight_broker.protocols.amqp.policies import ALL, NamedPolicy

OPERATORS: Final = "operator_policy"  # the component of a parameter


def read_policies(document: object) -> dict[str, list[NamedPolicy]]:
    """By vhost, in the order of the file, operator policies last; not checked. Raises DefinitionsError."""
    found: dict[str, list[NamedPolicy]] = {}
    for item in items(document, "policies"):
        found.setdefault(item.text("vhost"), []).append(_policy(item.text("name"), item, operator=False))
    for item in items(document, "parameters"):
        if item.text("component") == OPERATORS:
            value = Item(item.value.get("value"), f"{item.place}.value")
            found.setdefault(item.text("vhost"), []).append(_policy(item.text("name"), value, operator=True))
    return found


def read_other_parameters(document: object) -> list[str]:
    """Those that are no policies, for people. Raises DefinitionsError."""
    return [
        f"vhost {item.text('vhost')!r}, parameter {item.text('name')!r} of {item.text('component')!r}"
        for item in items(document, "parameters") if item.text("component") != OPERATORS
    ]


def _policy(name: str, item: Item, *, operator: bool) -> NamedPolicy:
    priority, given = item.value.get("priority", 0), item.value.get("definition")
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise DefinitionsError(f"{item.place}.priority: {priority!r:.40} is no int")
    if isinstance(given, list) and all(isinstance(each, list) and len(each) == 2 for each in given):
        given = dict(map(tuple, given)) if all(isinstance(key, str) for key, _ in given) else None
    if not isinstance(given, dict):
        raise DefinitionsError(f"{item.place}.definition: is no object")
    pattern = item.value.get("pattern")
    if not isinstance(pattern, str):
        raise DefinitionsError(f"{item.place}.pattern: is no text")
    check_value(given, f"{item.place}.definition", 1)
    check_value(pattern, f"{item.place}.pattern", 1)
    return NamedPolicy(name, pattern, item.text("apply-to", ALL), priority, given, operator)


def policy_row(vhost: str, policy: NamedPolicy) -> tuple[str, dict[str, Any]]:
    """An object of the file, and the list that it is in."""
    said = {"pattern": policy.pattern, "apply-to": policy.apply_to, "priority": policy.priority}
    if not policy.operator:
        return "policies", {"vhost": vhost, "name": policy.name, **said, "definition": dict(policy.definition)}
    value = {**said, "definition": [[key, each] for key, each in policy.definition.items()]}
    return "parameters", {"vhost": vhost, "name": policy.name, "component": OPERATORS, "value": value}
