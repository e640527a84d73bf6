"""/quotas: what each holder of a quota uses, of how much, how fast it goes, how often it was held back or refused.

Holders are principals (users, or else addresses), or with another `Per` the groups, clients or addresses with quotas.

Whatever a `Quota` bounds is shown, and nothing here names a quantity: its counts and pots, and its rates, each with the
bucket that `Paces` has for it. Views are made in steps, for there may be as many principals as clients.
"""

from collections.abc import Generator, Mapping
from dataclasses import fields
from heapq import heappush, heappushpop
from typing import Final, NamedTuple

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.metrics import OTHER, MetricFamily
from fanlight_broker.core.ports import View
from fanlight_broker.core.quota import NO_QUOTA, Holder, Per, Quota, Rate
from fanlight_broker.core.shares import Share, SharedPot, Traffic, traffic
from fanlight_broker.wire.token_bucket import TokenBucket

SORTED_MAX: Final = 5_000  # principals that are kept in order: 2 ms at the end
CLIENTS_AT_ONCE: Final = 256  # in a step, of 0.5 ms
PRINCIPALS_AT_ONCE: Final = 32
SHOWN_MAX: Final = 20  # principals with metrics of their own: those that use the largest part of a quota
TRAFFIC: Final = ("messages_in", "bytes_in", "messages_out", "bytes_out")
QUOTA_ORDERS: Final = ("part", *TRAFFIC, "connections", "sessions", "held", "refused")
CONNECTIONS: Final = "connections"
HOLDER_KINDS: Final = tuple(per.value for per in Per)


def part_of(used: int, limit: int) -> float:
    """How much of a limit is used. A device that may have one connection, and has it, is not near its limit: 0."""
    return 0.0 if used <= limit == 1 else used / max(1, limit)


class Bound(NamedTuple):
    """One quantity of a principal. used: None, where it is a bound on each thing. quota: what its quota says."""

    name: str
    used: int | None
    limit: int
    quota: int | None
    refused: int

    @property
    def part(self) -> float:
        return part_of(self.used or 0, self.limit)


class Usage(NamedTuple):
    """A principal, and what is known of it."""

    share: Share
    traffic: Traffic
    quota: Quota
    bounds: tuple[Bound, ...]
    paces: Mapping[str, TokenBucket]

    @property
    def part(self) -> float:
        """The largest that it uses of what it may."""
        return max((bound.part for bound in self.bounds), default=0.0)

    @property
    def held(self) -> int:
        return sum(pace.held for pace in self.paces.values())

    @property
    def refused(self) -> int:
        return sum(bound.refused for bound in self.bounds) + sum(pace.refused for pace in self.paces.values())

    def order(self, by: str) -> float:
        if by in TRAFFIC:
            return self.traffic[TRAFFIC.index(by)]
        if by == CONNECTIONS:
            return self.share.clients
        return self.share.used(SharedPot.SESSIONS) if by == "sessions" else float(getattr(self, by))


Usages = Generator[Usage | None, None, None]  # None: the end of a step


def usages(broker: Broker, per: Per = Per.USER) -> Usages:
    """All principals, or all holders of another kind, in steps."""
    passed: dict[Share, Traffic] = {}
    for number, client in enumerate(list(broker.everybody), 1):
        for share in client.parts:
            passed[share] = traffic(passed.get(share, share.passed), client.outbox)
        if number % CLIENTS_AT_ONCE == 0:
            yield None
    yield None
    found = list(broker.shares) if per is Per.USER else map(broker.shares.holder, _holders(broker, per))
    for number, share in enumerate(found, 1):
        yield _usage(broker, share, passed.get(share, share.passed))
        if number % PRINCIPALS_AT_ONCE == 0:
            yield None


def _holders(broker: Broker, per: Per) -> list[tuple[str, ...]]:
    """Those of a kind that have pots, rates or connections."""
    pots = [share.key for share in broker.shares.holders if share.key[0] == per]
    counted = [*(each for each, _ in broker.paces), *broker.paces.logins, *broker.everybody.pools]
    others = [holder for holder in counted if holder.per is per]
    return list(dict.fromkeys([*pots, *map(tuple, others)]))


def quota_in_force(share: Share) -> Quota:
    """Of several clients of a principal that have different ones, the quota of the one that connected last."""
    return share.entry if isinstance(share.entry, Quota) else NO_QUOTA


def _usage(broker: Broker, share: Share, passed: Traffic) -> Usage:
    quota = quota_in_force(share)
    bounds = [
        Bound(pot.value, used, broker.shares.most(share, pot), share.quota(pot), share.refusals(pot))
        for pot in SharedPot
        if (used := share.used(pot)) or share.quota(pot) is not None or share.refusals(pot)
    ]
    counts = counts_of(quota)
    connections = counts.pop(CONNECTIONS, None)
    if connections is not None:
        clients = connections_of(broker, share)
        bounds.append(Bound(CONNECTIONS, clients, connections, connections, share.connections_refused))
    bounds += [Bound(name, None, limit, limit, 0) for name, limit in (*counts.items(), *quota.maxima.items())]
    return Usage(share, passed, quota, tuple(bounds), broker.paces.of(holder_of(share)))


def holder_of(share: Share) -> Holder:
    """Whose share it is, as it is known to paces and pools."""
    if not share.by_quota:
        return Holder(Per.USER, share.principal)
    per, name, entry = share.key
    return Holder(Per(per), name, entry)


def connections_of(broker: Broker, share: Share) -> int:
    """Of a holder whose quota has no pots, the pool has them."""
    return max(share.clients, broker.everybody.pools.clients(holder_of(share))) if share.by_quota else share.clients


def counts_of(quota: Quota) -> dict[str, int]:
    """The whole numbers of a quota, beside its pots, that bound something."""
    found = {field.name: getattr(quota, field.name) for field in fields(quota)}
    return {name: value for name, value in found.items() if isinstance(value, int) and not isinstance(value, bool)}


def rates_of(quota: Quota) -> dict[str, Rate]:
    """By the names that their paces have."""
    found = {field.name: getattr(quota, field.name) for field in fields(quota)}
    return {name: value for name, value in found.items() if isinstance(value, Rate)}


# -- views ------------------------------------------------------------------------------------------------------------


def quotas_view(
    broker: Broker, now: float, *, offset: int, limit: int, by: str, principal: str | None, entry: str | None,
    per: Per = Per.USER,
) -> Generator[None, None, View]:
    """Holders of one kind, those with most first. principal, entry: only the one of this name, or those of this quota.
    """
    largest: list[tuple[float, int, Usage]] = []
    total = 0
    for number, usage in enumerate(usages(broker, per)):
        if usage is None:
            yield
            continue
        if principal is not None and usage.share.principal != principal:
            continue
        if entry is not None and usage.quota.name != entry:
            continue
        total += 1
        placed = usage.order(by), -number, usage
        if len(largest) < offset + limit:
            heappush(largest, placed)
        else:
            heappushpop(largest, placed)
    yield
    largest.sort(reverse=True)
    yield
    rows: list[View] = []
    for _, _, usage in largest[offset : offset + limit]:
        of_principal = not usage.share.by_quota  # sessions without a client are known by principals
        away = sum(home.sessions.away_of(usage.share) for home in broker.everywhere()) if of_principal else None
        rows.append(usage_view(usage, away, now) | {"connections": connections_of(broker, usage.share)})
        if len(rows) % PRINCIPALS_AT_ONCE == 0:
            yield
    return {"quotas": rows, "per": per.value, "by": by, "offset": offset, "limit": limit, "total": total}


def usage_view(usage: Usage, away: int | None, now: float) -> View:
    share, quota = usage.share, usage.quota
    rates = rates_of(quota)
    return {
        "principal": share.principal, "quota": quota.name or None,
        "part": round(usage.part, 4), "connections": share.clients,
        "sessions": share.used(SharedPot.SESSIONS), "away": away, **dict(zip(TRAFFIC, usage.traffic, strict=True)),
        "held": usage.held, "refused": usage.refused,
        "quantities": {
            bound.name: {
                "used": bound.used, "limit": bound.limit, "quota": bound.quota, "refused": bound.refused
            }
            for bound in usage.bounds
        },
        "rates": {name: rate_view(pace, rates.get(name, Rate()), now) for name, pace in usage.paces.items()},
    }


def rate_view(pace: TokenBucket, rate: Rate, now: float) -> View:
    messages, octets = pace.owed(now)
    return {
        "messages": rate.messages or None, "bytes": rate.octets or None,
        "over_rate": "refuse" if pace.refusing else "hold", "owed_messages": messages, "owed_bytes": octets,
        "wait_seconds": round(pace.seconds(now), 6), "passed": pace.spent, "held": pace.held, "refused": pace.refused,
    }


# -- metrics ----------------------------------------------------------------------------------------------------------


def quota_families(broker: Broker) -> Generator[None, None, list[MetricFamily]]:
    """What is used of quotas and how much that may be, by the holders nearest to one; the others as one, OTHER."""
    largest: list[tuple[float, int, str, Mapping[str, tuple[int, int]]]] = []
    sums: dict[str, tuple[int, int]] = {}
    for number, share in enumerate([*broker.shares, *broker.shares.holders], 1):
        if number % PRINCIPALS_AT_ONCE == 0:
            yield
        own = _used_of_quota(share)
        if not own:
            continue
        placed = max(part_of(used, limit) for used, limit in own.values()), -number, label_of(share), own
        if len(largest) < SHOWN_MAX:
            heappush(largest, placed)
            continue
        for name, (used, limit) in heappushpop(largest, placed)[3].items():
            before = sums.get(name, (0, 0))
            sums[name] = before[0] + used, before[1] + limit
    rows: list[tuple[str, Mapping[str, tuple[int, int]]]] = [(each[2], each[3]) for each in largest]
    rows += [(OTHER, sums)] if sums else []

    def family(name: str, help: str, place: int) -> MetricFamily:
        return MetricFamily(name, help, "gauge", [
            ({"principal": principal, "quantity": quantity}, float(pair[place]))
            for principal, own in rows for quantity, pair in own.items()
        ])

    if not rows:
        return []
    return [
        family("quota_used", f"What holders use of their quotas: of {SHOWN_MAX}, and of the others", 0),
        family("quota_limit", "The quotas that fanlight_quota_used is of", 1),
    ]


def label_of(share: Share) -> str:
    """Another one for each: an address is a principal, and may be the holder of several quotas."""
    return f"{share.principal} ({share.key[-1]})" if share.by_quota else share.principal


def _used_of_quota(share: Share) -> dict[str, tuple[int, int]]:
    """Quantities that its quota bounds: used, and the bound."""
    quota = quota_in_force(share)
    if quota is NO_QUOTA:
        return {}
    found = {pot.value: (share.used(pot), most) for pot, most in quota.pots.items()}
    connections = counts_of(quota).get(CONNECTIONS)
    return found if connections is None else {CONNECTIONS: (share.clients, connections), **found}


def pace_families(broker: Broker) -> list[MetricFamily]:
    """How often rates have held publishers or subscribers back, or refused messages, by quota."""
    paces = broker.paces
    found = (
        ("quota_holds", "Times a publisher over its rate was not read from for a while", paces.held_by),
        ("quota_delivery_holds", "Times that subscribers over their rate had to wait", paces.sat_out_by),
        ("quota_logins_refused", "Logins refused because clients log in too often", paces.logins.refused_by),
        ("quota_refused", "Messages refused because their publisher was over its rate", paces.refused_by),
    )
    return [
        MetricFamily(name, help, "counter", samples, replaces=frozenset({name}))
        for name, help, counts in found if (samples := counts.samples("quota"))
    ]
