"""Rules: what is decided about a message beside where it goes (`ports.Rules`). Here: nothing."""

from typing import TYPE_CHECKING

from fanlight_broker.wire.route import Route

if TYPE_CHECKING:
    from fanlight_broker.core.publication import Publication


class NoRules:
    empty = True

    def check(self, publication: "Publication", route: Route) -> None:
        pass
