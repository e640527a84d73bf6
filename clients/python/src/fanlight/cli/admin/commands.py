"""What each word of `fanlight admin` does: one request or a few, and what is said of the answer."""

import argparse
import base64
import sys
from collections.abc import Callable
from itertools import islice
from typing import Any

from .. import exits, spelling, text
from ..explain import explained
from ..http import Views
from . import operating, output
from .api import AdminApi
from .resources import RESOURCES, duration

PEEKED: tuple[tuple[str, str], ...] = (
    ("TOPIC", "topic"), ("WAITED", "waited_seconds"), ("ATTEMPT", "attempt"), ("BYTES", "size"),
    ("PAYLOAD", "payload|payload_base64"),
)  # fmt: skip
BRANCH: tuple[tuple[str, str], ...] = (
    ("WORD", "word"), ("TOPIC", "topic"), ("MESSAGES", "messages"), ("BELOW", "messages_below"),
    ("RETAINED", "retained"), ("DEEPER", "deeper"),
)  # fmt: skip
LIMITS: tuple[tuple[str, str], ...] = (("LIMIT", "limit"), ("USED", "used"), ("MOST", "most"), ("PERCENT", "percent"))


def run(options: argparse.Namespace) -> int:
    api = AdminApi(Views(options.http, options.ca, options.cert, options.key))
    part = getattr(options, "part", None)
    return COMMANDS[options.action if part is None else f"{options.action} {part}"](api, options)


# -- looking ---------------------------------------------------------------------------------------------------------


def ls(api: AdminApi, options: argparse.Namespace) -> int:
    resource = RESOURCES[options.what]
    query = {"sort": options.sort, "q": options.q, "order": "desc" if options.desc else None}
    for word in options.only:
        key, mark, value = word.partition("=")
        if not mark or key not in resource.keys:
            known = ", ".join(resource.keys) or "none"
            raise ValueError(f"{word!r} is not KEY=VALUE; keys of {options.what}: {known}")
        query[key] = value
    if "syntax" in resource.keys and "syntax" not in query:
        for key in ("topic", "filter"):
            if key in query:
                query["syntax"] = spelling.inferred(str(query[key]))

    def show() -> None:
        found = api.rows(resource.path, options.limit, resource.paged, resource.rows, dict(query))
        output.rows(options, found, resource.columns)

    return output.watched(options, show)


def retained_ls(api: AdminApi, options: argparse.Namespace) -> int:
    query = {"namespace": options.namespace}
    if options.filter is not None:
        query |= {"filter": options.filter, "syntax": spelling.of_filter(options, options.filter)}

    def show() -> None:
        if options.filter is not None:
            found = api.rows("/retained", options.limit, True, "items", dict(query))
        else:  # the broker's own are some 50, which change all the time, and would hide the others
            every = api.rows("/retained", None, True, "items", dict(query))
            found = islice((each for each in every if not each.get("own")), options.limit)
        output.rows(options, found, RESOURCES["retained"].columns)

    return output.watched(options, show)


def show(api: AdminApi, options: argparse.Namespace) -> int:
    place = f"{options.what}s"
    return output.watched(options, lambda: output.document(
        options, api.get(place, options.name, namespace=getattr(options, "namespace", None))
    ))  # fmt: skip


def status(api: AdminApi, options: argparse.Namespace) -> int:
    def page() -> None:
        found = api.get("overview")
        if output.as_json(options):
            output.line(found)
            return
        state = "draining" if found["draining"] else "ready" if found["ready"] else "not ready"
        print(f"fanlight {found['version']}  {state}  up {duration(found['uptime_seconds'])}  {found['durability']}")
        for each in found["unwell"]:
            print(f"not well: {text.shown(str(each))}")
        bounded = [each for each in found["limits"] if each["most"]]
        full = [{**each, "percent": round(100 * each["used"] / each["most"])} for each in bounded]
        full.sort(key=lambda each: -each["percent"])
        output.rows(options, full[:10], LIMITS)
        drops = ", ".join(f"{reason} {number:,}" for reason, number in found["drops"].items() if number)
        print(f"dropped: {drops or 'nothing'}")

    return output.watched(options, page)


def events(api: AdminApi, options: argparse.Namespace) -> int:
    for number, event in enumerate(api.events(options.kinds), 1):
        if output.as_json(options):
            output.line(event)
        else:
            hidden = ("kind", "time", "event")
            said = "  ".join(f"{key}={text.shown(str(value))}" for key, value in event.items() if key not in hidden)
            print(f"{event.get('time', '')}  {event['kind']:13}  {said}", flush=True)
        if number == options.count:
            break
    return exits.OK


def explain(api: AdminApi, options: argparse.Namespace) -> int:
    syntax = spelling.of_topic(options, options.topic)
    found = api.get("explain", topic=options.topic, syntax=syntax, client=options.client, fields=options.fields)
    if output.as_json(options):
        output.line(found)
    else:
        print("\n".join(explained(found)))
    return exits.OK


# -- ending things -----------------------------------------------------------------------------------------------------


def kick(api: AdminApi, options: argparse.Namespace) -> int:
    whose = {key: value for key in ("client", "user", "address") if (value := getattr(options, key)) is not None}
    how = {"reason": options.reason, "at_once": options.at_once or None}
    if (options.number is None) == (not whose):
        raise ValueError("say whom to kick: a connection's NUMBER, or --client, --user or --address")
    if options.number is not None:
        answer = api.call("DELETE", "connections", options.number, **how)
        return output.done(options, answer, f"connection {options.number} of {output.name(answer['client'])} has ended")
    described = ", ".join(f"{key} {output.name(value)}" for key, value in whose.items())
    if not output.agreed(options, f"end all connections of {described}?"):
        return output.not_done()
    answer = api.call("DELETE", "connections", **whose, **how)
    return output.done(options, answer, f"{answer['ended']:,} connections of {described} have ended")


def end(api: AdminApi, options: argparse.Namespace) -> int:
    name = output.name(options.client)
    if not output.agreed(options, f"end the session {name}, with what waits for it?"):
        return output.not_done()
    answer = api.call("DELETE", "sessions", options.client, namespace=options.namespace)
    return output.done(options, answer, f"the session {name} has ended; {answer['messages']:,} messages were lost")


def session_peek(api: AdminApi, options: argparse.Namespace) -> int:
    found = api.get("sessions", options.client, "messages", limit=options.count, namespace=options.namespace)
    output.rows(options, found["items"], PEEKED)
    return exits.OK


def session_move(api: AdminApi, options: argparse.Namespace) -> int:
    name, to = output.name(options.client), output.name(options.to)
    if options.replace and not output.agreed(options, f"end the session of {to}, with what waits for it?"):
        return output.not_done()
    body = {"to": options.to, "replace": options.replace}
    answer = api.call("POST", "sessions", options.client, "move", body=body, namespace=options.namespace)
    waiting = f"{answer['messages']:,} messages wait, {answer['in_flight']:,} are in flight"
    said = f"the session {name} is that of {to} now: {waiting}, {answer['lost']:,} were lost"
    return output.done(options, answer, said)


# -- retained messages -------------------------------------------------------------------------------------------------


def retained_get(api: AdminApi, options: argparse.Namespace) -> int:
    syntax = spelling.of_topic(options, options.topic)
    found = api.get("retained", options.topic, syntax=syntax, namespace=options.namespace)
    if options.json:
        output.line(found)
        return exits.OK
    payload = base64.b64decode(found["payload_base64"]) if "payload_base64" in found else found["payload"].encode()
    if options.table or sys.stdout.isatty():
        print(text.shown(payload))
    else:
        sys.stdout.buffer.write(payload)
    return exits.OK


def content(options: argparse.Namespace) -> dict[str, Any]:
    """The message of the command line, as the body of a request."""
    payload = sys.stdin.buffer.read() if options.payload == "-" else text.octets(options.payload)
    body: dict[str, Any] = {"qos": options.qos}
    try:
        body["payload"] = payload.decode()
    except UnicodeDecodeError:
        body["payload_base64"] = base64.b64encode(payload).decode()
    if options.expiry is not None:
        body["expiry_seconds"] = options.expiry
    return body


def retained_set(api: AdminApi, options: argparse.Namespace) -> int:
    body = content(options)
    syntax = spelling.of_topic(options, options.topic)
    answer = api.call("PUT", "retained", options.topic, body=body, syntax=syntax, namespace=options.namespace)
    return output.done(options, answer, f"{output.name(options.topic)} is set")


def retained_rm(api: AdminApi, options: argparse.Namespace) -> int:
    syntax = spelling.of_topic(options, options.topic)
    if {"#", "+" if syntax == "mqtt" else "*"} & set(options.topic.split("/" if syntax == "mqtt" else ".")):
        raise ValueError(f"{options.topic!r} is a filter; `fanlight admin retained clear FILTER` clears all it matches")
    answer = api.call("DELETE", "retained", options.topic, syntax=syntax, namespace=options.namespace)
    return output.done(options, answer, f"{output.name(options.topic)} is cleared")


def retained_clear(api: AdminApi, options: argparse.Namespace) -> int:
    name = output.name(options.filter)
    if not output.agreed(options, f"clear all retained messages that {name} matches?"):
        return output.not_done()
    syntax = spelling.of_filter(options, options.filter)
    answer = api.call("DELETE", "retained", filter=options.filter, syntax=syntax, namespace=options.namespace)
    return output.done(options, answer, f"{answer['cleared']:,} retained messages are cleared")


# -- queues ------------------------------------------------------------------------------------------------------------


def queue_peek(api: AdminApi, options: argparse.Namespace) -> int:
    found = api.get("queues", options.queue, "messages", limit=options.count, namespace=options.namespace)
    output.rows(options, found["items"], PEEKED)
    return exits.OK


def purge(api: AdminApi, options: argparse.Namespace) -> int:
    name = output.name(options.queue)
    if not output.agreed(options, f"drop all messages that wait in {name}?"):
        return output.not_done()
    answer = api.call("POST", "queues", options.queue, "purge", namespace=options.namespace)
    return output.done(options, answer, f"{answer['messages']:,} messages of {name} are dropped")


def queue_move(api: AdminApi, options: argparse.Namespace) -> int:
    body = {key: value for key, value in (("to", options.to), ("count", options.count)) if value is not None}
    answer = api.call("POST", "queues", options.queue, "move", body=body, namespace=options.namespace)
    output.done(options, answer, f"{answer['messages']:,} messages of {output.name(options.queue)} are moved")
    if answer["stopped"]:
        print(f"fanlight admin: it stopped there: {text.shown(str(answer['stopped']))}", file=sys.stderr)
        return exits.REFUSED
    return exits.OK


def queue_rm(api: AdminApi, options: argparse.Namespace) -> int:
    name = output.name(options.queue)
    if options.force and not output.agreed(options, f"end the queue {name}, and lose what waits in it?"):
        return output.not_done()
    answer = api.call(
        "DELETE", "queues", options.queue, if_empty=options.if_empty or None, force=options.force or None,
        namespace=options.namespace,
    )
    return output.done(options, answer, f"the queue {name} has ended; {answer['messages']:,} messages were lost")


def publish(api: AdminApi, options: argparse.Namespace) -> int:
    body = {**content(options), "topic": options.topic, "retain": options.retain}
    body["syntax"] = spelling.of_topic(options, options.topic)
    answer = api.call("POST", "messages", body=body, namespace=options.namespace)
    return output.done(options, answer, f"{output.name(options.topic)} has {answer['subscribers']:,} subscribers")


def tree(api: AdminApi, options: argparse.Namespace) -> int:
    syntax = spelling.of_topic(options, options.below or "")

    def show() -> None:
        query = {"below": options.below, "syntax": syntax, "namespace": options.namespace}
        output.rows(options, api.rows("/topics/tree", options.limit, True, "items", query), BRANCH)

    return output.watched(options, show)


def cancel(api: AdminApi, options: argparse.Namespace) -> int:
    answer = api.call("DELETE", "delayed", options.id, namespace=options.namespace)
    return output.done(options, answer, f"the message {options.id} is given up")


COMMANDS: dict[str, Callable[[AdminApi, argparse.Namespace], int]] = {
    "status": status, "ls": ls, "show": show, "events": events, "explain": explain,
    "kick": kick, "end": end, "purge": purge,
    "session ls": ls, "session show": show, "session peek": session_peek, "session move": session_move,
    "session end": end,
    "retained ls": retained_ls, "retained get": retained_get, "retained set": retained_set, "retained rm": retained_rm,
    "retained clear": retained_clear,
    "queue ls": ls, "queue info": show, "queue peek": queue_peek, "queue purge": purge, "queue move": queue_move,
    "queue rm": queue_rm,
    "publish": publish, "tree": tree, "cancel": cancel,
    "user ls": ls, "user groups": ls, "user show": show, "permission ls": ls, "quota ls": ls, "rules ls": ls,
    "bridge ls": ls, "bridge show": show, "archive ls": ls, "archive readers": ls,
    **operating.COMMANDS,
}  # fmt: skip
