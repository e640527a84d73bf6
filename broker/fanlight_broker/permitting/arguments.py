"""`fanlightd permissions`: the arguments of its commands, and what their help says. What they do is in command.py."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fanlight_broker.core.limits import Limits
from fanlight_broker.parsing import Parser, commands_below

PERMISSIONS: Final = """\
Check, try and import a file of permissions, without a broker. docs/permissions.md has the keys of the file:

  [[allow]]
  group = "sensors"
  publish = "site/%u/#"
  subscribe = ["site/%u/cmd/+"]
"""
CHECK: Final = """\
Read a file of permissions as the broker would, and say what is wrong with it: each problem with its line. Then what is
odd: rules that never decide because more salient ones do, pairs of rules of which one allows and the other denies the
same, and rules that allow a lot to everybody.

examples:
  fanlightd permissions check permissions.toml
  fanlightd permissions check --strict permissions.toml      in CI: warnings and rules that never decide fail, too

exit codes: 0 the file can be put in force, 1 it cannot (with --strict: or is odd), 2 wrong arguments or settings
"""
TEST: Final = """\
Say what a file of permissions decides, by which rule, and why more salient rules do not apply. What is not given of the
client is not known: no user is an anonymous client, which is in the group `anonymous`.

A topic with `/` or `+` is spelled as in MQTT, any other one as in the native protocol; `mqtt:` or `amqp:` before it
says which. For subscribe, replay and queue it may be a filter.

examples:
  fanlightd permissions test permissions.toml --user alice --group sensors --action publish --topic site/alice/temp
  fanlightd permissions test permissions.toml --user alice --action subscribe --topic 'site/+/temp'
  fanlightd permissions test permissions.toml --user alice --action publish --topic t --fields '{"price": 120}'
  fanlightd permissions test permissions.toml --address 10.1.2.3 --action connect
  fanlightd permissions test permissions.toml --user alice --own claim.json --action publish --topic t

exit codes: 0 allowed, 1 denied or allowed in part, 2 wrong arguments, settings or file
"""
IMPORT: Final = """\
Print permissions of another broker as a file of permissions. What cannot be converted exactly is left out and
reported on standard error: nothing is ever allowed that was not. Check the result, then try it with `test`.

  mosquitto   an acl_file: user, topic, pattern, with %u and %c
  rabbitmq    definitions (rabbitmqctl export_definitions FILE): permissions and topic permissions of one vhost, and
              the tags administrator and monitoring; regular expressions that are a prefix, a text or made of words

examples:
  fanlightd permissions import mosquitto /etc/mosquitto/acl > permissions.toml
  fanlightd permissions import rabbitmq definitions.json --vhost / > permissions.toml

exit codes: 0 all of it is converted, 1 some of it is not, 2 wrong arguments, or the file cannot be read
"""

LimitsOf = Callable[[argparse.Namespace], Limits]
AddConfig = Callable[[argparse.ArgumentParser], None]


def add_commands(
    parser: Parser, help_of: type[argparse.HelpFormatter], add_config: AddConfig, limits: LimitsOf
) -> None:
    """limits: of the settings that the arguments name"""
    command = commands_below(parser, help_of)

    def check(arguments: argparse.Namespace) -> int:
        from fanlight_broker.permitting.command import check_permissions

        return check_permissions(arguments.file, limits(arguments), strict=arguments.strict, as_json=arguments.json)

    def test(arguments: argparse.Namespace) -> int:
        from fanlight_broker.permitting.command import test_permissions

        return test_permissions(arguments, limits(arguments))

    def convert(arguments: argparse.Namespace) -> int:
        from fanlight_broker.permitting.import_command import import_permissions

        return import_permissions(arguments.broker, arguments.file, vhost=arguments.vhost)

    each = command("check", check, "say what is wrong with a file of permissions, and what is odd", CHECK)
    _add_file(each)
    each.add_argument("--strict", action="store_true", help="fail if anything is odd, but for pairs of rules")
    each.add_argument("--json", action="store_true", help="print what was found as one JSON object")
    add_config(each)
    each = command("test", test, "say what a file of permissions decides, and why", TEST)
    _add_file(each)
    _add_request(each)
    each.add_argument("--json", action="store_true", help="print the decision as one JSON object")
    add_config(each)
    each = command("import", convert, "print permissions of mosquitto or RabbitMQ as such a file", IMPORT)
    each.add_argument("broker", choices=("mosquitto", "rabbitmq"), metavar="BROKER", help="mosquitto or rabbitmq")
    each.add_argument("file", type=Path, metavar="FILE", help="its file")
    each.add_argument("--vhost", default="/", help="the virtual host of RabbitMQ that is converted [default: /]")


def _add_file(parser: Parser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="TOML, or CSV if its name ends with .csv")


def _add_request(parser: Parser) -> None:
    group = parser.add_argument_group("who")
    group.add_argument("--user", default="", help="the verified user name [default: an anonymous client]")
    group.add_argument("--group", action="append", default=[], metavar="GROUP", help="a group of the user; repeatable")
    group.add_argument("--client", default="", help="the client identifier")
    group.add_argument("--certificate", default="", help="the subject of its certificate")
    group.add_argument("--address", default="", help="its address")
    group.add_argument("--protocol", default="", help="mqtt or native")
    group.add_argument("--listener", default="", help="where it has connected")
    group.add_argument("--own", type=Path, metavar="FILE", help="rules that it brings along, JSON as in a token")
    group.add_argument("--namespace", default=None, help="where it is; default: what the file says")
    group = parser.add_argument_group("what")
    group.add_argument(
        "--action", required=True,
        help="connect, publish, retain, will, request, subscribe, replay, queue, admin:read or admin:write",
    )
    group.add_argument("--topic", help="a topic; for subscribe, replay and queue also a filter")
    group.add_argument("--fields", metavar="JSON", help='of the message, for `where`: {"price": 120, "payload.a": 1}')
