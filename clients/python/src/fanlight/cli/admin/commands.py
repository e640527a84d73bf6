"""What each word of `fanlight admin` does: one request or a few, and what is said of the answer."""

import argparse
import base64
import errno
import os
import sys
import time
from collections.abc import Callable
from http.client import HTTPResponse
from typing import Any

from ...errors import FanlightError
from .. import exits, spelling, text
from ..explain import explained
from ..http import Views
from . import output
from .api import COPY_SECONDS, AdminApi, path_of
from .resources import RESOURCES, duration

NOT_DONE = "nothing was changed"
BYTES_AT_ONCE = 1024 * 1024
POLL_SECONDS = 0.5  # while clients go
PEEKED: tuple[tuple[str, str], ...] = (
    ("TOPIC", "topic"), ("WAITED", "waited_seconds"), ("ATTEMPT", "attempt"), ("BYTES", "size"),
    ("PAYLOAD", "payload|payload_base64"),
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
        found = api.rows("/retained", options.limit, True, "items", dict(query))
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
        return _not_done()
    answer = api.call("DELETE", "connections", **whose, **how)
    return output.done(options, answer, f"{answer['ended']:,} connections of {described} have ended")


def end(api: AdminApi, options: argparse.Namespace) -> int:
    name = output.name(options.client)
    if not output.agreed(options, f"end the session {name}, with what waits for it?"):
        return _not_done()
    answer = api.call("DELETE", "sessions", options.client, namespace=options.namespace)
    return output.done(options, answer, f"the session {name} has ended; {answer['messages']:,} messages were lost")


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


def retained_set(api: AdminApi, options: argparse.Namespace) -> int:
    payload = sys.stdin.buffer.read() if options.payload == "-" else text.octets(options.payload)
    body: dict[str, Any] = {"qos": options.qos}
    try:
        body["payload"] = payload.decode()
    except UnicodeDecodeError:
        body["payload_base64"] = base64.b64encode(payload).decode()
    if options.expiry is not None:
        body["expiry_seconds"] = options.expiry
    syntax = spelling.of_topic(options, options.topic)
    answer = api.call("PUT", "retained", options.topic, body=body, syntax=syntax, namespace=options.namespace)
    return output.done(options, answer, f"{output.name(options.topic)} is set")


def retained_rm(api: AdminApi, options: argparse.Namespace) -> int:
    syntax = spelling.of_topic(options, options.topic)
    answer = api.call("DELETE", "retained", options.topic, syntax=syntax, namespace=options.namespace)
    return output.done(options, answer, f"{output.name(options.topic)} is cleared")


def retained_clear(api: AdminApi, options: argparse.Namespace) -> int:
    name = output.name(options.filter)
    if not output.agreed(options, f"clear all retained messages that {name} matches?"):
        return _not_done()
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
        return _not_done()
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
        return _not_done()
    answer = api.call(
        "DELETE", "queues", options.queue, if_empty=options.if_empty or None, force=options.force or None,
        namespace=options.namespace,
    )
    return output.done(options, answer, f"the queue {name} has ended; {answer['messages']:,} messages were lost")


# -- permissions, and the broker itself --------------------------------------------------------------------------------


def may(api: AdminApi, options: argparse.Namespace) -> int:
    keys = ("user", "group", "client", "address", "protocol", "listener", "connection", "fields")
    found = api.get("permissions", "check", action=options.doing, topic=options.topic,
                    **{key: getattr(options, key) for key in keys})  # fmt: skip
    output.document(options, found)
    return exits.OK


def reload(api: AdminApi, options: argparse.Namespace) -> int:
    answer = api.call("POST", "reload")
    if output.as_json(options):
        output.line(answer)
        return exits.OK
    for key, value in answer.items():
        named = value if isinstance(value, list) else [value]
        print(f"{key.replace('_', ' ')}: {', '.join(text.shown(str(each)) for each in named) or 'nothing'}")
    return exits.OK


def log_level(api: AdminApi, options: argparse.Namespace) -> int:
    if options.level is None:
        answer = api.get("log-level")
    else:
        answer = api.call("PUT", "log-level", body={"level": options.level})
    return output.done(options, answer, str(answer["level"]))


def drain(api: AdminApi, options: argparse.Namespace) -> int:
    if options.cancel:
        return output.done(options, api.call("DELETE", "drain"), "clients are let in again")
    question = f"say goodbye to all clients{', and end the broker' if options.stop else ''}?"
    if not output.agreed(options, question):
        return _not_done()
    answer = api.call("POST", "drain", body={"seconds": options.seconds, "stop": options.stop})
    while answer["state"] == "draining" and not options.no_wait:
        time.sleep(POLL_SECONDS)
        try:
            answer = api.get("drain")
        except FanlightError:
            if not options.stop:
                raise
            answer = {**answer, "state": "stopped"}  # it has ended, as it was asked to
    return output.done(options, answer, f"the broker is {answer['state']}; {answer['connections']:,} clients are left")


def backup(api: AdminApi, options: argparse.Namespace) -> int:
    if options.file == "-":
        with _copy(api) as copy:
            while piece := copy.read(BYTES_AT_ONCE):
                sys.stdout.buffer.write(piece)
        return exits.OK
    if os.path.exists(options.file):  # before the broker makes a copy
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), options.file)
    size, partial = 0, f"{options.file}.part"
    with open(partial, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        try:
            with _copy(api) as copy:
                while piece := copy.read(BYTES_AT_ONCE):
                    size += file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            os.replace(partial, options.file)
        except BaseException:
            os.unlink(partial)
            raise
    return output.done(options, {"file": options.file, "bytes": size}, f"{options.file}: {size:,} bytes")


def _copy(api: AdminApi) -> HTTPResponse:
    return api.views.stream("POST", path_of(("backup",), {}), COPY_SECONDS)


def _not_done() -> int:
    print(f"fanlight admin: {NOT_DONE}", file=sys.stderr)
    return exits.REFUSED


COMMANDS: dict[str, Callable[[AdminApi, argparse.Namespace], int]] = {
    "status": status, "ls": ls, "show": show, "events": events, "explain": explain,
    "kick": kick, "end": end, "purge": purge,
    "retained ls": retained_ls, "retained get": retained_get, "retained set": retained_set, "retained rm": retained_rm,
    "retained clear": retained_clear,
    "queue ls": ls, "queue info": show, "queue peek": queue_peek, "queue purge": purge, "queue move": queue_move,
    "queue rm": queue_rm,
    "user ls": ls, "user show": show, "may": may,
    "reload": reload, "log-level": log_level, "drain": drain, "backup": backup,
}  # fmt: skip
