r"""RabbitMQ's permissions as permissions here: of one virtual host of a file of definitions.

    permissions         a user may write to, and read from, exchanges whose names match a regular expression
    topic_permissions   ... with routing keys that match one, on a topic exchange
    users               the tags administrator and monitoring: the views over HTTP, and changes by them

The routing keys of `amq.topic` are the topics, and it is what RabbitMQ's MQTT plug-in uses. Who may write to it, and
has no topic permission for it, may publish on every topic. Other exchanges, and queues: rabbitmq_names.py. A regular
expression of topics is converted if it is made of words: (rabbitmq.com/docs/access-control, "Topic Authorisation")

    ^site\.temp$     site.temp          ^site\..*        site.*.#        .*   #
    ^site\.[^.]+$    site.*             ^(a|b)\.x$       a.x and b.x     ^{username}\..*   %u.*.#
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fanlight_broker.permitting.importing import Imported, WrongImport, actions_of, filter_text
from fanlight_broker.permitting.rabbitmq_names import (
    EXCHANGES,
    PREDECLARED,
    QUEUES,
    allowed_by,
    both,
    exchange_filters,
    queue_filters,
)
from fanlight_permissions.namespace_entries import NAME

CLOSING: Final = 1  # salience of the denial for who has no permission in a vhost
TOPIC_EXCHANGE: Final = "amq.topic"
OWN_QUEUES: Final = ("amq.gen-1", "mqtt-subscription-1qos0", "mqtt-subscription-1qos1")
NOTES: Final = (
    "[^.]+ is converted to *, which also stands for an empty word.",
    "Who declares or deletes a queue or exchange may bind it as well: both are allowed to whom both were.",
    "To bind a queue to amq.topic with a key that begins with * or # needs all queues, or a rule of its own.",
)
NAMES: Final = {"{username}": "%u", "{client_id}": "%c"}
ONE_WORD: Final = (r"[^.]+", r"[^.]*", r"[^\.]+", r"[^\.]*", r"([^.]+)", r"([^.]*)")
SPECIAL: Final = frozenset("\\^$.|?*+()[]{}")
ALL: Final = frozenset({".*", "^.*", ".*$", "^.*$"})
NOTHING: Final = frozenset({"", "^$"})
ALTERNATIVES_MAX: Final = 100


class NotMadeOfWords(ValueError):
    """A regular expression that no filter stands for."""


def import_definitions(definitions: object, vhost: str, source: str) -> Imported:
    """Raises WrongImport."""
    if not isinstance(definitions, dict) or not isinstance(definitions.get("permissions"), list):
        raise WrongImport(f"{source}: is no file of definitions: it has no list `permissions`")
    made = Imported(source, notes=list(NOTES))
    place = _Place(vhost, definitions)
    topics: dict[str, list[Mapping[str, Any]]] = {}
    for each in _objects(definitions, "topic_permissions"):
        if each.get("vhost") == vhost:
            topics.setdefault(_text(each, "user"), []).append(each)
    others: dict[str, int] = {}
    for each in _objects(definitions, "permissions"):
        if each.get("vhost") != vhost:
            others[str(each.get("vhost"))] = others.get(str(each.get("vhost")), 0) + 1
            continue
        user = _text(each, "user")
        _convert(made, user, each, topics.get(user, ()), place)
    if place.closed:
        made.add("deny", "vhosts of others", {
            "namespace": place.closed, "connect": True, "everything": "#", "salience": CLOSING,
        })  # fmt: skip
    made.left_out += [f"virtual host {name!r}: permissions of {count} users" for name, count in sorted(others.items())]
    for each in _objects(definitions, "users"):
        tags = each.get("tags", [])
        known = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else []
        if {"administrator", "monitoring"} & set(map(str, known)):
            admin = ["read", "write"] if "administrator" in known else ["read"]
            _add(made, "tag " + ", ".join(map(str, known)), _text(each, "name"), {"admin": admin})
    return made


class _Place:
    """A vhost of the file: the names in it, and what each rule for it has.

    A rule without a namespace is for all of them. So those of the vhost `/` stand behind a denial for the others.
    """

    def __init__(self, vhost: str, definitions: Mapping[str, Any]) -> None:
        others = {str(each.get("vhost")) for each in _objects(definitions, "permissions")} - {vhost, "/"}
        self.cells: dict[str, Any] = {}
        if vhost == "/":
            self.closed = sorted(each for each in others if NAME.fullmatch(each))
            if self.closed:
                self.cells["salience"] = CLOSING + 1
        elif NAME.fullmatch(vhost) is None:
            raise WrongImport(f"virtual host {vhost!r}: no namespace can have this name")
        else:
            self.closed = [vhost]
            self.cells |= {"namespace": vhost, "connect": True}
        self.queues, self.exchanges = (
            [_text(each, "name") for each in _objects(definitions, kind) if each.get("vhost") == vhost]
            for kind in ("queues", "exchanges")
        )
        self.exchanges += PREDECLARED


def _convert(
    made: Imported, user: str, given: Mapping[str, Any], topics: Sequence[Mapping[str, Any]], place: _Place
) -> None:
    guard = _convert_names(made, user, given, place)
    own = [each for each in topics if each.get("exchange") in (TOPIC_EXCHANGE, "")]
    for each in topics:
        if each not in own:
            made.left_out.append(f"user {user!r}: topics of the exchange {each.get('exchange')!r}")
    if len(own) > 1:  # RabbitMQ has one for each user, virtual host and exchange
        made.left_out.append(f"user {user!r}: several topic permissions for {TOPIC_EXCHANGE}")
        return
    filters: dict[str, list[str]] = {"read": [], "write": []}
    for act, found in filters.items():
        if not _matches(made, user, act, _text(given, act), [TOPIC_EXCHANGE]):
            continue
        if act == "read" and not _has_queues(made, user, given):
            made.left_out.append(f"user {user!r}: read: it may not declare and bind a queue, so it cannot subscribe")
            continue
        regex = _text(own[0], act) if own else ".*"
        try:
            found += filters_of(regex)
        except NotMadeOfWords as error:
            made.left_out.append(f"user {user!r}: {act} {regex!r} on {TOPIC_EXCHANGE}: {error}")
    if cells := actions_of(filters["read"], filters["write"]):
        closed = {act: guard[act] for act in guard if cells.get(act) or (act == "queue" and filters["read"])}
        if closed:  # a filter such as # is not about queues and exchanges: those are allowed above
            _add(made, "queues and exchanges", user, {**place.cells, **closed}, effect="deny")
        _add(made, "topic permissions" if own else "permissions", user, {**place.cells, **cells})
        if filters["read"]:
            queue = {"protocol": "amqp", "queue": filters["read"]}
            _add(made, "bindings to amq.topic", user, {**place.cells, **queue})


def _convert_names(made: Imported, user: str, given: Mapping[str, Any], place: _Place) -> dict[str, list[str]]:
    """The rules for queues and exchanges. Returns those filters, by action, that no other rule may allow."""
    acts: dict[str, list[str]] = {"publish": [], "subscribe": [], "replay": [], "queue": []}
    guard: dict[str, list[str]] = {}

    def report(why: str) -> None:
        made.left_out.append(f"user {user!r}: {why}")

    for kind, known in (("queues", place.queues), ("exchanges", place.exchanges)):
        try:
            configure, write, read = (
                allowed_by(_text(given, act), known, words=kind == "queues") for act in ("configure", "write", "read")
            )
        except re.error as error:
            report(f"{kind}: {error}")
            return {"publish": [f"{EXCHANGES}#"], "subscribe": [f"{QUEUES}#", f"{EXCHANGES}#"],
                    "queue": [f"{QUEUES}#", f"{EXCHANGES}#"]}  # fmt: skip
        change = both(configure, write)
        for why in dict.fromkeys((*configure.reasons, *write.reasons, *read.reasons)):
            report(f"{kind}: {why}")
        binding = write if kind == "queues" or read.concerns(known) else configure  # a source is read
        if any(each.concerns(known) and each != change for each in (configure, binding)):
            report(f"{kind}: it may configure or bind some, and not both; here one action is both, so it may neither")
        filters, root = (queue_filters, QUEUES) if kind == "queues" else (exchange_filters, EXCHANGES)
        if kind == "exchanges":
            acts["publish"] += filters(write, report)
        readable = filters(read, report)
        acts["subscribe"] += readable
        if kind == "queues":
            acts["replay"] += readable  # of those that are streams
        acts["queue"] += filters(change, report)
        for act, allowed in (("publish", write), ("subscribe", read), ("queue", change)):
            if not allowed.everything and (act != "publish" or kind == "exchanges"):
                guard.setdefault(act, []).append(f"{root}#")
    if cells := {act: filters for act, filters in acts.items() if filters}:
        _add(made, "queues and exchanges", user, {**place.cells, **cells})
    elif "namespace" in place.cells:
        _add(made, "nothing but to connect", user, place.cells)
    return guard


def _add(made: Imported, comment: str, user: str, cells: Mapping[str, Any], effect: str = "allow") -> None:
    if "*" in user or any(name in user for name in ("%u", "%c", "%g")) or user != user.strip() or not user:
        made.left_out.append(f"user {user!r}: a name with * or %u cannot be written here")
    else:
        if effect == "deny":
            cells = {name: cell for name, cell in cells.items() if name != "connect"}
        made.add(effect, comment, {"user": user, **cells})


def _has_queues(made: Imported, user: str, given: Mapping[str, Any]) -> bool:
    """May the user have a queue of its own, which a subscription is in RabbitMQ?"""
    return all(_matches(made, user, act, _text(given, act), OWN_QUEUES) for act in ("configure", "write", "read"))


def _matches(made: Imported, user: str, act: str, regex: str, names: Sequence[str]) -> bool:
    """Does a regular expression match one of the names?"""
    if regex in NOTHING:
        return False
    try:
        return any(re.search(regex, name) is not None for name in names)
    except re.error as error:
        made.left_out.append(f"user {user!r}: {act} {regex!r}: {error}")
        return False


def filters_of(regex: str) -> list[str]:
    """Filters that match what a regular expression does, as a file of permissions has them. Raises NotMadeOfWords."""
    if regex in NOTHING:
        return []
    if regex in ALL:
        return ["#"]
    if not regex.startswith("^"):
        raise NotMadeOfWords("it has no ^ at its beginning, so it also matches in the middle of a topic")
    body = regex[1:]
    open_end = not body.endswith("$") or body.endswith("\\$")
    if not open_end:
        body = body[:-1]
    elif not body.endswith(".*") or body.endswith("\\.*"):
        raise NotMadeOfWords("it has no $ at its end, so it also matches longer words")
    return [filter_text(_filter(each), "amqp") for each in _alternatives(body)]


def _alternatives(body: str) -> list[str]:
    """Without the groups `(a|b)`, each of which is written out."""
    found = re.search(r"\(([^()\[\]\\]*\|[^()\[\]\\]*)\)(?![*+?{])", body)
    if found is None:
        if "|" in body:
            raise NotMadeOfWords("its alternatives are not in brackets such as (a|b)")
        return [body]
    before, behind = body[: found.start()], body[found.end() :]
    made = [rest for each in found[1].split("|") for rest in _alternatives(before + each + behind)]
    if len(made) > ALTERNATIVES_MAX:
        raise NotMadeOfWords(f"it has more than {ALTERNATIVES_MAX} alternatives")
    return made


def _filter(body: str) -> str:
    words: list[str] = []
    parts = re.split(r"\\\.", body)
    for place, part in enumerate(parts):
        if part == ".*":
            if place < len(parts) - 1:
                raise NotMadeOfWords("a .* in the middle may stand for words or for a part of one")
            # At least one word, which may be empty: behind the point, or as the whole topic.
            words += ["*", "#"]
        elif part in ONE_WORD:
            words.append("*")
        elif part in NAMES:
            words.append(NAMES[part])
        else:
            words.append(_literal(part))
    if len(words) > 1 and "" in words:
        raise NotMadeOfWords("it has an empty word")
    return ".".join(words)


def _literal(part: str) -> str:
    plain = re.sub(r"\\([^\w\s])", r"\1", part)
    if any(each in SPECIAL for each in re.sub(r"\\[^\w\s]", "", part)):
        raise NotMadeOfWords(f"{part!r} is no whole word")
    if plain in ("*", "#") or any(name in plain for name in ("%u", "%c", "%g")) or "." in plain:
        raise NotMadeOfWords(f"{plain!r} has another meaning here")
    return plain


def _objects(definitions: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = definitions.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise WrongImport(f"`{key}` is not a list of objects")
    return found


def _text(given: Mapping[str, Any], key: str) -> str:
    found = given.get(key)
    if not isinstance(found, str):
        raise WrongImport(f"{key!r} is missing, or is no text, in {dict(given)!r}")
    return found
