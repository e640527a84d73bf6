"""Rules: what is decided about a message beside where it goes (`ports.Rules`). Here: nothing."""


from fanlight_broker.core.publication import Publication
from fanlight_broker.wire.route import Route


class NoRules:
    empty = True

    def check(self, publication: Publication, route: Route) -> None:
        pass
