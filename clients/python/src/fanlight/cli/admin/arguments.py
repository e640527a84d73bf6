"""The words and options of `fanlight admin`, with help that teaches by example."""

import argparse
from collections.abc import Callable
from typing import Any

from .. import exits
from ..parsing import Parser, count, seconds
from . import operating_arguments
from .parts_of_arguments import group, listed, namespace, syntax, yes
from .resources import RESOURCES

SHOWN = ("connection", "session", "queue", "user", "bridge")

EXAMPLES = """\
examples:
  fanlight admin status                                     is it well, and how full is what is bounded?
  fanlight admin ls connections --sort messages_dropped --desc --limit 20
  fanlight admin ls subscriptions topic=stock.nasdaq.AAPL   which subscriptions does a topic reach?
  fanlight admin ls subscriptions redundant=true --json     lines of JSON; --table: a table, also in a pipe
  fanlight admin ls queues --watch                          again and again
  fanlight admin ls sessions connected=false | jq .client   lines of JSON in a pipe
  fanlight admin kick 17 --reason 'please update'
  fanlight admin end sensor/7                               a session, with what waits for it
  fanlight admin session move sensor/7 sensor/8             the device was replaced: what waits is for the new one
  fanlight admin retained ls 'site/#'
  fanlight admin retained clear 'site/7/#'
  fanlight admin queue move dead.billing                    dead letters, to where they came from
  fanlight admin events --kinds refusal,slow_consumer
  fanlight admin explain stock.nasdaq.AAPL --client desk-7
  fanlight admin user add anna --group ops                  asks for a password; --password-file FILE
  fanlight admin rules check temp/roof --fields '{"celsius": 31}'
  fanlight admin bridge pause north
  fanlight admin archive ls                                 files of the archive
  fanlight admin log-level debug
  fanlight admin drain --seconds 30 --stop
  fanlight admin backup store.tar
  fanlight admin api GET /history                           any call of the HTTP API, in JSON

Reading needs the permission admin:read, all else admin:write. The credentials are in the address (--http), in
FANLIGHT_TOKEN, or in a context (`fanlight context`, --context NAME). Several servers: --http http://one:7421,two:7421
"""
Actions = "argparse._SubParsersAction[Parser]"


def add_to(verbs: "argparse._SubParsersAction[Parser]", http: Callable[[argparse.ArgumentParser], None]) -> None:
    """The verb. http: adds the options of the HTTP listener."""
    about = "look at a running broker, and change what it does"
    verb = verbs.add_parser(
        "admin", help=about, description=f"{about[0].upper()}{about[1:]}.", epilog=f"{EXAMPLES}\n{exits.EXPLAINED}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = verb.add_subparsers(dest="action", required=True, metavar="COMMAND", parser_class=Parser)

    def action(name: str, about: str, more: str = "", *, among: Any = actions, watch: bool = False) -> Parser:
        made: Parser = among.add_parser(
            name, help=about, description=f"{about[0].upper()}{about[1:]}.", epilog=more,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        form = made.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="lines of JSON, also on a terminal")
        form.add_argument("--table", action="store_true", help="a table, also in a pipe")
        if watch:
            made.add_argument(
                "--watch", nargs="?", type=seconds, const=2.0, metavar="SECONDS",
                help="show it again and again (each 2)",
            )
        http(made)
        return made

    _looking(action)
    _ending(action)
    _retained(action, actions)
    _queues(action, actions)
    _sessions(action, actions)
    operating_arguments.add_to(action, actions)


def _looking(action: Callable[..., Parser]) -> None:
    action("status", "is it well, how long does it run, and how full is what is bounded", watch=True)
    kinds = "\n".join(
        f"  {name:16}{each.help}" + (f"\n{'':18}KEY: {', '.join(each.keys)}" if each.keys else "")
        for name, each in RESOURCES.items()
    )
    listing = action("ls", "list what there is", f"what:\n{kinds}\n", watch=True)
    listing.add_argument("what", choices=tuple(RESOURCES), metavar="WHAT", help=f"{', '.join(RESOURCES)}")
    listing.add_argument("only", nargs="*", metavar="KEY=VALUE", help="only rows that are so; the keys are below")
    listing.add_argument("--q", metavar="TEXT", help="only rows with this text in one of their names")
    listing.add_argument("--sort", metavar="KEY", help="a key of the rows, as --json shows them")
    listing.add_argument("--desc", action="store_true", help="the largest first")
    listing.add_argument("--limit", type=count, metavar="N", help="at most this number of rows")
    showing = action("show", "all that is known of one", watch=True)
    showing.add_argument("what", choices=SHOWN, metavar="WHAT", help=", ".join(SHOWN))
    showing.add_argument("name", metavar="NAME", help="a connection's number, else its name")
    namespace(showing)
    events = action("events", "what happens, as it happens: clients, refusals, limits, dead letters, changes")
    events.add_argument("--kinds", metavar="KIND,...", help="connect, disconnect, slow_consumer, refusal, limit, "
                        "dead_letter, reload, admin, drain, trouble [all]")
    events.add_argument("--count", type=count, metavar="N", help="exit after N events")
    explain = action("explain", "who gets a topic, through what, and why; who does not, and why not")
    explain.add_argument("topic", metavar="TOPIC")
    explain.add_argument("--client", metavar="NAME", help="why this client's other filters do not match")
    explain.add_argument("--fields", metavar="JSON", help="a message's fields, for selectors")
    syntax(explain)


def connection(word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise argparse.ArgumentTypeError(f"must be the number of a connection; of a client: --client {word}")
    return count(word)


def _ending(action: Callable[..., Parser]) -> None:
    kick = action("kick", "end connections; their clients may connect again")
    kick.add_argument("number", type=connection, nargs="?", metavar="NUMBER", help="of a connection: `ls connections`")
    for key in ("client", "user", "address"):
        kick.add_argument(f"--{key}", metavar=key.upper(), help=f"all connections of this {key}")
    kick.add_argument("--reason", metavar="TEXT", help="for the client, where its protocol can say it")
    kick.add_argument("--at-once", action="store_true", help="do not wait until it has read what it gets")
    yes(kick)
    end = action("end", "end a session: its connection, its subscriptions, and what waits for it")
    end.add_argument("client", metavar="CLIENT")
    namespace(end)
    yes(end)
    purge = action("purge", "drop what waits in a queue (as `queue purge`)")
    purge.add_argument("queue", metavar="QUEUE")
    namespace(purge)
    yes(purge)


def _retained(action: Callable[..., Parser], actions: Any) -> None:
    among = group(actions, "retained", "retained messages: list, read, set and clear them")
    listing = action("ls", "list those that a filter matches", among=among, watch=True)
    listing.add_argument("filter", metavar="FILTER", nargs="?", help="without one all, except those below $SYS")
    listing.add_argument("--limit", type=count, metavar="N", help="at most this number of rows")
    get = action("get", "write the payload of one; with --json all of it", among=among)
    put = action("set", "set one: publish it with the retain flag", among=among)
    rm = action("rm", "clear one", among=among)
    for each in (get, put, rm):
        each.add_argument("topic", metavar="TOPIC")
    put.add_argument("payload", metavar="PAYLOAD", help="- is standard input")
    put.add_argument("--qos", type=int, choices=(0, 1, 2), default=0, help="(0)")
    put.add_argument("--expiry", type=seconds, metavar="SECONDS", help="clear it after this time")
    clear = action("clear", "clear all that a filter matches", among=among)
    clear.add_argument("filter", metavar="FILTER")
    yes(clear)
    for each in (listing, get, put, rm, clear):
        syntax(each)
        namespace(each)


def _sessions(action: Callable[..., Parser], actions: Any) -> None:
    among = group(actions, "session", "sessions: list, look into, move and end them")
    listed(action("ls", "list them", among=among, watch=True), "sessions")
    show = action("show", "all that is known of one", among=among, watch=True)
    show.set_defaults(what="session")
    peek = action("peek", "the oldest messages that wait; none is taken", among=among)
    peek.add_argument("--count", type=count, default=10, metavar="N", help="how many (10; 200 at most)")
    move = action("move", "give it to another client: its subscriptions, and all that waits", among=among)
    move.add_argument("--replace", action="store_true", help="end a session that TO has already")
    end = action("end", "end it, with its connection and what waits (as `end`)", among=among)
    for each in (show, peek, move, end):
        each.add_argument("client" if each is not show else "name", metavar="CLIENT")
        namespace(each)
    move.add_argument("to", metavar="TO", help="the other client's identifier")
    for each in (move, end):
        yes(each)


def _queues(action: Callable[..., Parser], actions: Any) -> None:
    among = group(actions, "queue", "named queues: list, look into, empty, move and remove them")
    listed(action("ls", "list them", among=among, watch=True), "queues")
    info = action("info", "all that is known of one", among=among, watch=True)
    info.set_defaults(what="queue")
    peek = action("peek", "the oldest messages that wait; none is taken", among=among)
    peek.add_argument("--count", type=count, default=10, metavar="N", help="how many (10; 200 at most)")
    purge = action("purge", "drop what waits", among=among)
    move = action("move", "move what waits, oldest first: to another queue, or where it was published", among=among)
    move.add_argument("--to", metavar="QUEUE", help="without it, each goes to its own topic again")
    move.add_argument("--count", type=count, metavar="N", help="at most this number")
    rm = action("rm", "end a queue", among=among)
    rm.add_argument("--if-empty", action="store_true", help="though it has consumers")
    rm.add_argument("--force", action="store_true", help="though it has messages, which are lost")
    for each in (info, peek, purge, move, rm):
        each.add_argument("queue" if each is not info else "name", metavar="QUEUE")
        namespace(each)
    for each in (purge, rm):
        yes(each)
