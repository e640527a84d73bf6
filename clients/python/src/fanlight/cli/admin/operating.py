"""What the words of `fanlight admin` do for users, permissions, rules, bridges, the archive, and the broker itself."""

import argparse
import errno
import getpass
import json
import os
import sys
import time
from collections.abc import Callable
from http.client import HTTPResponse
from typing import Any

from ...errors import FanlightError
from .. import exits, spelling, text
from ..passwords import first_line
from . import output
from .api import COPY_SECONDS, ROOT, TIMEOUT_SECONDS, AdminApi, path_of

BYTES_AT_ONCE = 1024 * 1024
POLL_SECONDS = 0.5  # while clients go
ARCHIVED: tuple[tuple[str, str], ...] = (
    ("OFFSET", "offset"), ("TOPIC", "topic"), ("BYTES", "size"), ("PAYLOAD", "payload|payload_base64"),
)  # fmt: skip


# -- users -------------------------------------------------------------------------------------------------------------


def user_add(api: AdminApi, options: argparse.Namespace) -> int:
    body = {"user": options.user, "groups": options.group, "limits": dict(map(_limit, options.limit))}
    answer = api.call("POST", "users", body={**body, "password": _password(options)})
    return output.done(options, answer, f"{output.name(options.user)} is added")


def user_passwd(api: AdminApi, options: argparse.Namespace) -> int:
    answer = api.call("PUT", "users", options.user, "password", body={"password": _password(options)})
    return output.done(options, answer, f"{output.name(options.user)} has another password")


def user_set(api: AdminApi, options: argparse.Namespace) -> int:
    limits: dict[str, int | None] = {**dict(map(_limit, options.limit)), **dict.fromkeys(options.remove_limit)}
    body = {"add_groups": options.add_group, "remove_groups": options.remove_group, "limits": limits}
    answer = api.call("PATCH", "users", options.user, body=body)
    groups = ", ".join(map(str, answer["groups"])) or "none"
    limited = ", ".join(f"{name}={value}" for name, value in answer["limits"].items()) or "none"
    return output.done(options, answer, f"{output.name(options.user)}: groups {groups}; limits {limited}")


def user_rm(api: AdminApi, options: argparse.Namespace) -> int:
    name = output.name(options.user)
    if not output.agreed(options, f"delete the user {name}, and end its connections?"):
        return output.not_done()
    return output.done(options, api.call("DELETE", "users", options.user), f"{name} is deleted")


def _limit(word: str) -> tuple[str, int]:
    name, _, number = word.partition("=")
    if not number.isascii() or not number.isdigit():
        raise ValueError(f"--limit {word}: write NAME=NUMBER")
    return name, int(number)


def _password(options: argparse.Namespace) -> str:
    """Raises ValueError, OSError."""
    if options.password_file is not None:
        return first_line(options.password_file)
    if not sys.stdin.isatty():
        raise ValueError("there is no terminal to ask for the password on; give it with --password-file FILE (- is "
                         "standard input)")
    password = getpass.getpass("password: ")
    if getpass.getpass("once more: ") != password:
        raise ValueError("the two passwords differ")
    return password


# -- permissions, rules, quotas ----------------------------------------------------------------------------------------


def rules_check(api: AdminApi, options: argparse.Namespace) -> int:
    body = {"topic": options.topic, "syntax": spelling.of_topic(options, options.topic)}
    if options.fields is not None:
        body["fields"] = _object(options.fields, "--fields")
    answer = api.call("POST", "rules", "check", body=body)
    if output.as_json(options):
        output.line(answer)
        return exits.OK
    print(f"rules: {', '.join(_named(each) for each in answer['rules']) or 'none acts'}")
    for each in answer.get("routed", ()):  # without fields nobody knows what a selector says
        print(f"routed: {text.shown(str(each['topic']))}")
    return exits.OK


def _named(rule: Any) -> str:
    return text.shown(str(rule.get("rule", rule.get("name", "")) if isinstance(rule, dict) else rule))


def _reloads(what: str) -> Callable[[AdminApi, argparse.Namespace], int]:
    """The file of this alone."""

    def reload_one(api: AdminApi, options: argparse.Namespace) -> int:
        answer = api.call("POST", what, "reload")
        number = next(iter(answer.values()))
        return output.done(options, answer, f"{number:,} {what} are in force")

    return reload_one


# -- bridges and the archive -------------------------------------------------------------------------------------------


def _bridge(verb: str) -> Callable[[AdminApi, argparse.Namespace], int]:
    def change(api: AdminApi, options: argparse.Namespace) -> int:
        answer = api.call("POST", "bridges", options.bridge, verb)
        return output.done(options, answer, f"{output.name(options.bridge)} is {answer['state']}")

    return change


def archive_status(api: AdminApi, options: argparse.Namespace) -> int:
    return output.watched(options, lambda: output.document(options, api.get("archive")))


def archive_messages(api: AdminApi, options: argparse.Namespace) -> int:
    query = {"from": options.begin, "since": options.since, "limit": options.limit, "namespace": options.namespace}
    found = api.get("archive", "messages", filter=options.filter,
                    syntax=spelling.of_filter(options, options.filter), **query)  # fmt: skip
    output.rows(options, found["items"], ARCHIVED)
    return exits.OK


# -- the broker itself -------------------------------------------------------------------------------------------------


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
        return output.not_done()
    answer = api.call("POST", "drain", body={"seconds": options.seconds, "stop": options.stop})
    while answer["state"] == "draining" and not options.no_wait:
        time.sleep(POLL_SECONDS)
        try:
            answer = api.get("drain")
        except FanlightError:
            if not options.stop:
                raise
            answer = {**answer, "state": "stopped"}  # it has ended, as it was asked to
    left = "" if answer["state"] == "stopped" else f"; clients left: {answer['connections']:,}"
    return output.done(options, answer, f"the broker is {answer['state']}{left}")


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


def call(api: AdminApi, options: argparse.Namespace) -> int:
    body = None
    if options.body is not None:
        body = _object(sys.stdin.read() if options.body == "-" else options.body, "JSON")
    elif options.method in ("POST", "PUT", "PATCH"):
        body = {}
    path = options.path if options.path.startswith(ROOT) else f"{ROOT}/{options.path.lstrip('/')}".rstrip("/")
    output.document(options, api.views.send(options.method, path, body, TIMEOUT_SECONDS))
    return exits.OK


def _object(word: str, what: str) -> dict[str, Any]:
    """Raises ValueError."""
    try:
        found = json.loads(word)
    except ValueError as error:
        raise ValueError(f"{what} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{what} is not a JSON object, as in {{\"seconds\": 10}}")
    return found


COMMANDS: dict[str, Callable[[AdminApi, argparse.Namespace], int]] = {
    "user add": user_add, "user passwd": user_passwd, "user set": user_set, "user rm": user_rm,
    "may": may, "permission reload": _reloads("permissions"), "quota reload": _reloads("quotas"),
    "rules check": rules_check, "rules reload": _reloads("rules"),
    "bridge pause": _bridge("pause"), "bridge resume": _bridge("resume"), "bridge reconnect": _bridge("reconnect"),
    "archive status": archive_status, "archive messages": archive_messages,
    "reload": reload, "log-level": log_level, "drain": drain, "backup": backup, "api": call,
}  # fmt: skip
