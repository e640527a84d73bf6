"""The words of `fanlight admin` for users, permissions, rules, quotas, bridges, the archive, and the broker itself."""

from collections.abc import Callable
from typing import Any

from ..parsing import Parser, count, seconds
from .parts_of_arguments import group, listed, namespace, syntax, yes

Action = Callable[..., Parser]


def add_to(action: Action, actions: Any) -> None:
    """action: makes a word, among those of `actions` if nothing else is said"""
    _users(action, actions)
    _permissions(action, actions)
    _rules(action, actions)
    _bridges(action, actions)
    _archive(action, actions)
    _messages(action, actions)
    _running(action)


def _users(action: Action, actions: Any) -> None:
    among = group(actions, "user", "users of the broker's file, their groups, limits and passwords")
    listed(action("ls", "list them", among=among, watch=True), "users")
    listed(action("groups", "list the groups that they are in", among=among, watch=True), "groups")
    show = action("show", "groups, quotas and ways to log in of one", among=among, watch=True)
    show.add_argument("name", metavar="USER")
    show.set_defaults(what="user", namespace=None)
    add = action("add", "add one, or fail if it is there", among=among)
    passwd = action("passwd", "give one another password; its connections end", among=among)
    change = action("set", "change groups and limits of one; its connections end", among=among)
    rm = action("rm", "delete one; its connections end", among=among)
    for each in (add, passwd, change, rm):
        each.add_argument("user", metavar="USER")
    for each in (add, passwd):
        each.add_argument("--password-file", metavar="FILE", help="its first line is the password; - is standard input")
    more = "may be given several times"
    add.add_argument("--group", action="append", default=[], metavar="NAME", help=more)
    change.add_argument("--add-group", action="append", default=[], metavar="NAME", help=more)
    change.add_argument("--remove-group", action="append", default=[], metavar="NAME", help=more)
    for each in (add, change):
        each.add_argument("--limit", action="append", default=[], metavar="NAME=NUMBER",
                          help=f"such as connections=10; {more}")
    change.add_argument("--remove-limit", action="append", default=[], metavar="NAME", help=more)
    yes(rm)


def _permissions(action: Action, actions: Any) -> None:
    may = action("may", "is this allowed, by which rule, and why",
                 "examples:\n  fanlight admin may publish site/7/temp --user anna\n"
                 "  fanlight admin may subscribe 'site/#' --group operators --protocol mqtt\n")
    may.add_argument("doing", metavar="ACTION", help="publish, subscribe, ... (docs/permissions.md)")
    may.add_argument("topic", metavar="TOPIC", nargs="?", help="topic or filter, in MQTT's or our own syntax")
    for key in ("user", "group", "client", "address", "protocol", "listener", "connection"):
        may.add_argument(f"--{key}", metavar=key.upper(), help=f"of who asks: {key}")
    may.add_argument("--fields", metavar="JSON", help="of the message")
    for name, about, what in (
        ("permission", "rules of permissions; `may` tries a decision", "permissions"),
        ("quota", "quotas, and what is used of them", "quotas"),
    ):
        among = group(actions, name, about)
        listed(action("ls", "list them", among=among, watch=True), what)
        action("reload", "read the file again; an error in it changes nothing", among=among)


def _rules(action: Action, actions: Any) -> None:
    among = group(actions, "rules", "routing rules: list, try and reload them")
    listed(action("ls", "list them", among=among, watch=True), "rules")
    check = action("check", "what they make of a message; nothing is published", among=among)
    check.add_argument("topic", metavar="TOPIC")
    check.add_argument("--fields", metavar="JSON", help="of the message, as selectors call them")
    syntax(check)
    action("reload", "read the file again; an error in it changes nothing", among=among)


def _bridges(action: Action, actions: Any) -> None:
    among = group(actions, "bridge", "bridges to other brokers: list, pause and resume them")
    listed(action("ls", "list them", among=among, watch=True), "bridges")
    show = action("show", "all that is known of one", among=among, watch=True)
    show.add_argument("name", metavar="BRIDGE")
    show.set_defaults(what="bridge", namespace=None)
    for name, about in (
        ("pause", "close its link until it is resumed; what goes out waits"), ("resume", "make its link again"),
        ("reconnect", "close its link, and make it anew at once"),
    ):
        action(name, about, among=among).add_argument("bridge", metavar="BRIDGE")


def _archive(action: Action, actions: Any) -> None:
    among = group(actions, "archive", "the archive: its files, who reads it, and what is in it")
    action("status", "offsets, sizes, and what is wrong with it", among=among, watch=True)
    listed(action("ls", "list its files", among=among, watch=True), "segments")
    listed(action("readers", "list who reads it, and how far", among=among, watch=True), "readers")
    messages = action("messages", "a window of it", among=among)
    messages.add_argument("filter", metavar="FILTER", nargs="?", default="#", help="(all)")
    messages.add_argument("--from", dest="begin", type=int, metavar="OFFSET", help="the first offset")
    messages.add_argument("--since", type=float, metavar="SECONDS", help="since 1970, in place of --from")
    messages.add_argument("--limit", type=count, default=100, metavar="N", help="at most this number (100; 1,000)")
    namespace(messages)
    syntax(messages)


def _messages(action: Action, actions: Any) -> None:
    publish = action("publish", "publish one message, and wait until it is stored")
    publish.add_argument("topic", metavar="TOPIC")
    publish.add_argument("payload", metavar="PAYLOAD", help="- is standard input")
    publish.add_argument("--qos", type=int, choices=(0, 1, 2), default=1, help="(1)")
    publish.add_argument("--retain", action="store_true", help="it is the topic's retained message from now on")
    publish.add_argument("--expiry", type=seconds, metavar="SECONDS", help="it is not delivered after this time")
    tree = action("tree", "the next words of topics that are retained, or were published lately", watch=True)
    tree.add_argument("below", metavar="TOPIC", nargs="?", help="below this topic (all)")
    tree.add_argument("--limit", type=count, default=1_000, metavar="N", help="at most this number (1,000)")
    cancel = action("cancel", "give a delayed message up: `ls delayed`")
    cancel.add_argument("id", type=count, metavar="ID")
    for each in (publish, tree, cancel):
        namespace(each)
    for each in (publish, tree):
        syntax(each)


def _running(action: Action) -> None:
    action("reload", "read settings and all files again, as SIGHUP does")
    level = action("log-level", "show what the log has, or change it until the next reload")
    level.add_argument("level", nargs="?", metavar="LEVEL", help="debug, info, warning or error")
    drain = action("drain", "let nobody in any more, say goodbye to all, and wait until they have gone",
                   "after --seconds, those who have not read it are cut off\n")
    drain.add_argument("--seconds", type=seconds, default=30.0, metavar="SECONDS", help="for clients to go (30)")
    drain.add_argument("--stop", action="store_true", help="end the broker then")
    drain.add_argument("--cancel", action="store_true", help="let clients in again")
    drain.add_argument("--no-wait", action="store_true", help="return at once")
    yes(drain)
    backup = action("backup", "a copy of the store, as a tar file")
    backup.add_argument("file", metavar="FILE", help="a new file; - is standard output")
    call = action("api", "any call of the HTTP API: `api GET /` lists them",
                  "examples:\n  fanlight admin api GET /history\n  fanlight admin api GET '/connections?slow=true'\n"
                  "  fanlight admin api POST /drain '{\"seconds\": 10}'\n")
    call.add_argument("method", choices=("GET", "POST", "PUT", "PATCH", "DELETE"), metavar="METHOD")
    call.add_argument("path", metavar="PATH", help="below /api/v1, with its query, percent-encoded")
    call.add_argument("body", metavar="JSON", nargs="?", help="an object; - is standard input")
