"""Clients of several namespaces on one broker: the user `acme-ann` is in the group `acme`, and so in its namespace."""

from typing import Any, Final

from fanlight_broker.core.limits import Limits
from fanlight_permissions.permission_file import compile_permissions, parse_permissions
from fanlight_permissions.table import PermissionTable
from tests.broker.protocols.permitted import Client, MqttClient, NativeClient, World

RULES: Final = """
[[namespace]]
group = "acme"
name = "acme"

[[namespace]]
group = "beta"
name = "beta"

[[allow]]
everything = ["#", "$SYS/#", "$inbox/#", "$namespace/#"]
admin = ["read", "write"]
"""
TENANTS: Final = ("acme", "beta")
HOMES: Final = ("acme", "beta", "")


def permissions(text: str) -> PermissionTable:
    limits = Limits()
    return compile_permissions(parse_permissions(text, "permissions", limits), "permissions", limits)


class Tenants(World):
    """`rules`: a file of permissions, in force from the beginning."""

    def __init__(self, rules: str = RULES, **options: Any) -> None:
        super().__init__(**options)
        self.use(rules)

    def use(self, rules: str) -> None:
        self.broker.use_permissions(permissions(rules))
        self.turn()

    def at(self, home: str, dialect: str, name: str = "dev", **options: Any) -> Client:
        """A client of a namespace, whose identifier may be that of another in another namespace; `""`: the root's."""
        user = options.pop("user", None) or (f"{home}-ann" if home else "root-ann")
        self.groups[user] = frozenset({home}) if home else frozenset()
        return self.client(dialect, name, user=user, **options)

    def native(self, home: str, name: str = "dev", **options: Any) -> NativeClient:
        made = self.at(home, "native", name, **options)
        assert isinstance(made, NativeClient)
        return made

    def mqtt(self, home: str, name: str = "dev", dialect: str = "mqtt5", **options: Any) -> MqttClient:
        made = self.at(home, dialect, name, **options)
        assert isinstance(made, MqttClient)
        return made
