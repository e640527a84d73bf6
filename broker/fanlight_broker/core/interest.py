"""What the clients of this broker want, for a broker that sends messages here and need not send the others.

    $SYS/broker/interest   {"everything": false, "filters": ["mqtt:sensors/#", ...], "no_local": {"plant-7": [...]}}

Each filter has its syntax before it. A client's subscriptions that leave out its own messages are in `no_local`, by the
client's name: it wants nothing by them that it publishes itself. Where no filter says what is wanted (an archive,
rules, exchanges), or there are too many, it is `everything`, and so it is once when the topic is withdrawn.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from fanlight_broker.core.router import Router
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES

NAME: Final = "interest"  # of the topic, below those of the broker
PLACES_MAX: Final = 4_000  # of subscriptions that are looked at: some 2 ms, when they have changed
OCTETS_MAX: Final = 256 * 1024  # of the text
SECONDS: Final = 0.25  # between two texts
EVERYTHING: Final = '{"everything":true}'


class InterestTopic:
    """Works out the text, when it is due and something has changed. `told`: is it published?"""

    def __init__(self, router: Router, *, told: bool = False) -> None:
        self.told = told
        self._router = router
        self._text = EVERYTHING
        self._known: tuple[object, ...] = ()
        self._looked_at = float("-inf")

    def values(self) -> Mapping[str, str]:
        """A source of `SystemTopics`."""
        return {NAME: self._text} if self.told else {}

    def changed(self, now: float) -> str | None:
        """The text, if it is another one than the last time."""
        if not self.told:
            was_told, self._known, self._text = bool(self._known), (), EVERYTHING
            return EVERYTHING if was_told else None
        if now - self._looked_at < SECONDS:
            return None
        self._looked_at = now
        known = self._router.interest_version
        if known == self._known:
            return None
        self._known = known
        before, self._text = self._text, self._made()
        return self._text if self._text != before else None

    def _made(self) -> str:
        if self._router.wants_beyond_filters:
            return EVERYTHING
        found, rest = self._router.from_place(0, PLACES_MAX)
        text = EVERYTHING if rest is not None else text_of(found)
        return text if len(text) <= OCTETS_MAX else EVERYTHING


def text_of(subscriptions: Iterable[Subscription]) -> str:
    filters: set[str] = set()
    no_local: dict[str, set[str]] = {}
    for each in subscriptions:
        octets: bytes = each.filter
        if octets.startswith(b"$"):
            continue  # the broker's own topics, which nobody sends here
        shown = f"{SYNTAXES[each.syntax_number]}:{octets.decode()}"
        (no_local.setdefault(each.owner.name, set()) if each.no_echo else filters).add(shown)
    return json.dumps({
        "everything": False, "filters": sorted(filters),
        "no_local": {name: sorted(own) for name, own in sorted(no_local.items())},
    }, separators=(",", ":"))
