"""Named contexts: brokers by name, with their credentials, so that a command needs no address.

The file is contexts.json below $XDG_CONFIG_HOME/fanlight, which only its owner may read: URLs have passwords in them.
It is replaced whole, so it is never half written.

    --url, --http    win over    --context    wins over    FANLIGHT_URL, FANLIGHT_HTTP_URL
    these win over   FANLIGHT_CONTEXT         wins over    the context in use       wins over    this machine
"""

import argparse
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..connecting import DEFAULT_URL
from ..url import check_credentials, each_server, shown, split
from . import exits
from .http import DEFAULT_URL as DEFAULT_HTTP_URL
from .parsing import Parser, did_you_mean
from .passwords import first_line

TLS_FILES = ("ca", "cert", "key")
EXAMPLES = """\
examples:
  fanlight context add prod fanlights://anna:secret@broker.example.com --ca ca.pem
  fanlight context add lab fanlights://anna@lab --password-file ~/.lab-password
  fanlight context add pair fanlight://one,two                     two servers: the second if the first is away
  fanlight context use prod
  fanlight sub 'stock.#'                                           on prod
  fanlight admin ls connections --context pair                     on another one, once
  fanlight context ls
"""


@dataclass(frozen=True, slots=True)
class Context:
    """url: of the native protocol; http: of the HTTP listener; ca, cert, key: PEM files; password_file: its first line.
    """

    url: str
    http: str
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    password_file: str | None = None

    def with_password(self, url: str) -> str:
        """One of its URLs, with the password of the file, which is read each time. Raises ValueError, OSError."""
        user, at, hosts = url.partition("://")[2].partition("@")
        if self.password_file is None or not at:
            return url
        return f"{url.partition('://')[0]}://{user}:{quote(first_line(self.password_file), safe='')}@{hosts}"


@dataclass(slots=True)
class Contexts:
    """What the file has."""

    current: str | None = None
    by_name: dict[str, Context] = field(default_factory=dict)

    def named(self, name: str) -> Context:
        """Raises ValueError."""
        if name not in self.by_name:
            known = ", ".join(sorted(self.by_name)) or "none"
            near = did_you_mean(name, self.by_name)
            raise ValueError(f"there is no context {name!r}{near} (known: {known}; `fanlight context add` makes one)")
        return self.by_name[name]


def file() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "fanlight" / "contexts.json"


def load() -> Contexts:
    """Raises ValueError if the file cannot be understood."""
    try:
        document = json.loads(file().read_text(encoding="utf-8"))
        found = {name: Context(**values) for name, values in document["contexts"].items()}
        return Contexts(document["current"], found)
    except FileNotFoundError:
        return Contexts()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{file()}: not a file of contexts ({error}); mend it, or remove it") from None


def save(contexts: Contexts) -> None:
    """Replace the file; others may not read it."""
    path = file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    document = {
        "current": contexts.current,
        "contexts": {name: _kept(each) for name, each in sorted(contexts.by_name.items())},
    }
    descriptor, name = tempfile.mkstemp(prefix=".contexts-", dir=path.parent)  # with mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(json.dumps(document, indent=2) + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _kept(context: Context) -> dict[str, str]:
    return {name: value for name, value in asdict(context).items() if value is not None}


def apply(options: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> None:
    """Fill in what the command line has left out of the broker's address. Raises ValueError."""
    wanted = getattr(options, "context", None)
    for name, variable, default in (
        ("url", "FANLIGHT_URL", DEFAULT_URL), ("http", "FANLIGHT_HTTP_URL", DEFAULT_HTTP_URL),
    ):  # fmt: skip
        if not hasattr(options, name) or getattr(options, name) is not None or options.verb == "context":
            continue
        if wanted is None and environment.get(variable):
            setattr(options, name, environment[variable])
            continue
        contexts = load()
        chosen = wanted or environment.get("FANLIGHT_CONTEXT") or contexts.current
        if chosen is None:
            setattr(options, name, default)
            continue
        context = contexts.named(chosen)
        setattr(options, name, context.with_password(getattr(context, name)))
        if all(getattr(options, each) is None for each in TLS_FILES):
            for each in TLS_FILES:
                setattr(options, each, getattr(context, each))


def http_of(url: str) -> str:
    """Where the HTTP listener is, if it has its usual port on the same hosts. Raises InvalidURL."""
    check_credentials(url)
    servers = each_server(url)
    secure = split(servers[0])[0].scheme == "fanlights"
    user, at, _ = url.partition("://")[2].partition("/")[0].rpartition("@")
    hosts = []
    for each in servers:
        host = split(each)[0].hostname or ""
        hosts.append((f"[{host}]" if ":" in host else host) + (":7424" if secure else ":7421"))
    return f"{'https' if secure else 'http'}://{user}{at}{','.join(hosts)}"


# -- the verb --------------------------------------------------------------------------------------------------------


def add_to(verbs: "argparse._SubParsersAction[Parser]") -> None:
    form = argparse.RawDescriptionHelpFormatter
    about = "name brokers, and choose the one that commands talk to"
    verb = verbs.add_parser(
        "context", help=about, description=f"{about[0].upper()}{about[1:]}.",
        epilog=f"{EXAMPLES}\nThe file: {file()}, readable by its owner alone.\n\n{exits.EXPLAINED}",
        formatter_class=form,
    )
    actions = verb.add_subparsers(dest="action", required=True, metavar="COMMAND", parser_class=Parser)
    adding = actions.add_parser("add", help="add one, or replace it", description="Add a context, or replace it.")
    adding.add_argument("name", metavar="NAME")
    adding.add_argument("url", metavar="URL", help="fanlight[s]://[user:password@]host[:port][,host...]")
    adding.add_argument("--http", metavar="URL", help="the HTTP listener (the same hosts, port 7421, or 7424 with TLS)")
    adding.add_argument(
        "--password-file", metavar="FILE", help="its first line is the user's password, read each time it is needed"
    )
    adding.add_argument("--use", action="store_true", help="and use it; the first one is used anyway")
    for flag, what in (("--ca", "CA certificates to trust"), ("--cert", "certificate to show"), ("--key", "its key")):
        adding.add_argument(flag, metavar="FILE", help=f"for TLS: {what}, PEM")
    actions.add_parser("ls", help="list them", description="List the contexts; * is the one in use.")
    for name, does in (("use", "use one from now on"), ("rm", "remove one")):
        each = actions.add_parser(name, help=does, description=f"{does[0].upper()}{does[1:]}.")
        each.add_argument("name", metavar="NAME")


def run(options: argparse.Namespace) -> int:
    contexts = load()
    actions: dict[str, Any] = {"add": _add, "ls": _list, "use": _use, "rm": _remove}
    actions[options.action](contexts, options)
    return exits.OK


def _add(contexts: Contexts, options: argparse.Namespace) -> None:
    for each in each_server(options.url):
        scheme = split(each)[0].scheme
        if scheme not in ("fanlight", "fanlights"):
            raise ValueError(f"the address {shown(options.url)!r} begins with fanlight:// or fanlights://")
    if options.password_file is not None:
        credentials = options.url.partition("://")[2].rpartition("@")[0]
        if not credentials or ":" in credentials:
            raise ValueError("with --password-file the address has a user and no password: fanlights://anna@HOST")
        first_line(options.password_file)  # is there one?
    files = {name: os.path.abspath(value) for name in TLS_FILES if (value := getattr(options, name)) is not None}
    if options.password_file is not None:
        files["password_file"] = os.path.abspath(options.password_file)
    contexts.by_name[options.name] = Context(options.url, options.http or http_of(options.url), **files)
    if options.use or contexts.current is None:
        contexts.current = options.name
    save(contexts)


def _list(contexts: Contexts, options: argparse.Namespace) -> None:
    width = max((len(name) for name in contexts.by_name), default=0)
    for name, context in sorted(contexts.by_name.items()):
        print(f"{'*' if name == contexts.current else ' '} {name:{width}}  {shown(context.url)}  {shown(context.http)}")


def _use(contexts: Contexts, options: argparse.Namespace) -> None:
    contexts.named(options.name)
    contexts.current = options.name
    save(contexts)


def _remove(contexts: Contexts, options: argparse.Namespace) -> None:
    contexts.named(options.name)
    del contexts.by_name[options.name]
    if contexts.current == options.name:
        contexts.current = None
    save(contexts)
