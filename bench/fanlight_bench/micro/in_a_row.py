"""`python -m fanlight_bench.micro.in_a_row serve ...`: this broker without its index of selectors, for comparison.

It evaluates the selector of each matching subscription in turn, as brokers do that have no index: EMQX, Artemis. The
rest is the same broker: routes, reading of fields, compiled selectors, delivery. Up to 16 selectors of a screen are
verified in a row (matchcore/screen.pxd), so here a filter has as many screens of 16 as it needs. To go from one screen
to the next takes some nanoseconds for 16 selectors. Nothing of this is in the product.
"""

import sys
from typing import Any

from fanlight_broker import cli
from fanlight_broker.core import router
from fanlight_broker.core.screens import Screens
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.wire.screening import FilterScreen

ROW = 16


class RowScreens(Screens):
    """Screens that have no more selectors than are verified in a row."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._own: dict[int, FilterScreen] = {}  # by the ids of subscriptions

    def insert(self, subscription: Subscription) -> bool:
        key = subscription.filter, subscription.syntax_number
        found = self._of_filter.get(key)
        if found is not None and len(found.ids) >= ROW:
            del self._of_filter[key]  # and so a new one begins; the full one stays in the matcher by its id
        try:
            first = super().insert(subscription)
        except BaseException:
            if found is not None:
                self._of_filter[key] = found
            raise
        self._own[subscription.id] = self._of_filter[key]
        return first

    def remove(self, subscription: Subscription) -> bool:
        self._of_filter[subscription.filter, subscription.syntax_number] = self._own.pop(subscription.id)
        return super().remove(subscription)

    def screen_of(self, subscription: Subscription) -> FilterScreen:
        return self._own[subscription.id]


def main() -> int:
    """The broker's command line."""
    router.Screens = RowScreens  # type: ignore[attr-defined, assignment]
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
