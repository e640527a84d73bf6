"""Overlapping filters of one session: one copy, at the highest QoS granted, with all subscription identifiers
(MQTT 5, 3.3.4), decided once when a route is built.

    filters that match       the session's own messages          those of others
    -------------------      ---------------------------         ----------------
    all without no-local     one target for both
    all with no-local        nobody                              one target, NOT_OWN
    some of each             those without, ONLY_OWN             all of them, NOT_OWN
"""

from fanlight_broker.core.subscription import Subscription
from fanlight_broker.wire.gather import heard_by_own, summed_up
from fanlight_broker.wire.message import RETAIN_AS_PUBLISHED, RETAIN_CLEAR, Variants
from fanlight_broker.wire.target import Target


def merged(subscriptions: list[Subscription], variants: Variants) -> list[Target]:
    """The targets that stand for one session's subscriptions on a route."""
    if len(subscriptions) == 1:
        return subscriptions
    local = heard_by_own(subscriptions)
    if len(local) == len(subscriptions):
        return [union(subscriptions, variants)]
    targets = [union(subscriptions, variants, no_echo=True)]
    if local:
        targets.append(union(local, variants, only_echo=True))
    return targets


def union(targets: list[Target], variants: Variants, *, no_echo: bool = False, only_echo: bool = False) -> Target:
    """One target for several of one session. It counts for each of them."""
    qos, keeps_retain, identifiers = summed_up(targets)
    retain = RETAIN_AS_PUBLISHED if keeps_retain else RETAIN_CLEAR
    variant = variants.of(targets[0].variant.format, qos, retain, identifiers)
    window = targets[0].window
    assert window is not None
    return Target(window, variant, targets[0].number, no_echo=no_echo, only_echo=only_echo, parts=targets)
