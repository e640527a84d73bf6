"""`python -m fanlight_bench`: load a broker, compare brokers, and measure parts of ours. Each has its --help.

    python -m fanlight_bench                          the everyday scenarios, on a broker of its own and the null broker
    python -m fanlight_bench load fan-out --url URL   one scenario against any broker: native, MQTT, NATS, AMQP
    python -m fanlight_bench load --list              the scenarios there are
    python -m fanlight_bench serve-null --port 7421   the null broker alone
    python -m fanlight_bench micro ...                parts of the broker by themselves: see micro/__main__.py
    python -m fanlight_bench scaling ...              cost per message against filters, subscribers, connections
    python -m fanlight_bench peers ...                Fanlight beside other brokers: see peers/__main__.py
    python -m fanlight_bench amqp ...                 Fanlight beside RabbitMQ, by AMQP
    python -m fanlight_bench permissions ...          what 100,000 rules of permissions cost a broker
    python -m fanlight_bench isolation ...            what one user at full speed costs another
    python -m fanlight_bench dashboard ...            what an open page of the dashboard costs the broker
    python -m fanlight_bench pipeline ...             the archive in Spark: see pipeline/__main__.py
    python -m fanlight_bench planted ...              what the job silence finds of faults planted in real data
    python -m fanlight_bench start ...                how long a broker takes to listen, and its memory at rest
    python -m fanlight_bench sizing ...               what a broker keeps for each session, message, connection
    python -m fanlight_bench tls-memory ...           what a connection by TLS takes of its memory

Exit codes: 0 all is well; 1 something was lost, repeated, reordered, damaged or misrouted, or a connection
was closed; 2 the command line is wrong; 3 the server did not start, or refused the load.
"""

import argparse
import sys

from fanlight_bench.launch import START_SECONDS, Patience, program

EVERYTHING = ["load", "--null", "--repeats", "3"]
COMMANDS = {
    "load": "scenarios against any broker",
    "micro": "parts of the broker by themselves",
    "scaling": "cost per message against filters, subscribers, connections",
    "peers": "Fanlight beside other brokers",
    "amqp": "Fanlight beside RabbitMQ, by AMQP",
    "permissions": "what 100,000 rules of permissions cost a broker",
    "isolation": "what one user at full speed costs another",
    "dashboard": "what an open page of the dashboard costs the broker",
    "pipeline": "the archive in Spark",
    "planted": "what the job silence finds of faults planted in real data",
    "start": "how long a broker takes to listen, and its memory at rest",
    "sizing": "what a broker keeps in memory for each session, message, connection",
    "tls-memory": "what a connection by TLS takes of its memory",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    _, after = _common().parse_known_args(sys.argv[1:] if arguments is None else arguments)
    arguments = after or EVERYTHING
    command, rest = arguments[0], arguments[1:]
    # Imported where it is needed: some need compiled modules that are optional, some the broker.
    if command == "load":
        from fanlight_bench.load.command import main as load

        return load(rest)
    if command == "micro":
        from fanlight_bench.micro.__main__ import main as micro

        return micro(rest)
    if command == "scaling":
        from fanlight_bench.scaling.__main__ import main as scaling

        return scaling(rest)
    if command == "peers":
        from fanlight_bench.peers.__main__ import main as peers

        return peers(rest)
    if command == "amqp":
        from fanlight_bench.amqp.__main__ import main as amqp

        return amqp(rest)
    if command == "permissions":
        from fanlight_bench.permissions import main as permissions

        return permissions(rest)
    if command == "dashboard":
        from fanlight_bench.dashboard import main as dashboard

        return dashboard(rest)
    if command == "isolation":
        from fanlight_bench.isolation import main as isolation

        return isolation(rest)
    if command == "pipeline":
        from fanlight_bench.pipeline.__main__ import main as pipeline

        return pipeline(rest)
    if command == "planted":
        from fanlight_bench.pipeline.planted import main as planted

        return planted(rest)
    if command == "start":
        from fanlight_bench.start import main as start

        return start(rest)
    if command == "sizing":
        from fanlight_bench.sizing import main as sizing

        return sizing(rest)
    if command == "tls-memory":
        from fanlight_bench.tls_memory import main as tls_memory

        return tls_memory(rest)
    return _serve_null(arguments)


def _common() -> argparse.ArgumentParser:
    """What all commands take, wherever it stands."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(
        "--start-timeout", type=Patience.parse, default=START_SECONDS, metavar="SECONDS",
        help="how long a server that is started may take (%(default)g)",
    )
    return parser


def _serve_null(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=program(), description=(__doc__ or "").replace("python -m fanlight_bench", program()),
        formatter_class=argparse.RawDescriptionHelpFormatter, parents=[_common()],
    )  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True)
    for name, line in COMMANDS.items():  # found above already; named for --help
        commands.add_parser(name, help=line)
    null = commands.add_parser("serve-null", help="the null broker alone")
    null.add_argument("--port", type=int, default=0)
    options = parser.parse_args(arguments)
    from fanlight_bench import null_server

    null_server.serve(options.port)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
