"""RabbitMQ with its MQTT plugin, in Erlang, on all processors.

It is started without Debian's wrapper, which would go on as the user of the system service and with its files: here
node name, data, cookie, ports and even epmd, Erlang's register of nodes, are its own, and end with it.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from fanlight_bench.launch import LaunchError
from fanlight_bench.peers.peer import Peer, Up, free_ports, said, served, which

CONFIGURATION = """\
listeners.tcp.1 = 127.0.0.1:AMQP_PORT
mqtt.listeners.tcp.1 = 127.0.0.1:PORT
mqtt.allow_anonymous = true
mqtt.default_user = guest
mqtt.default_pass = guest
mqtt.vhost = /
mqtt.exchange = amq.topic
mqtt.prefetch = 1000
mqtt.tcp_listen_options.backlog = 4096
mqtt.tcp_listen_options.nodelay = true
log.file = false
log.console = false
vm_memory_high_watermark.relative = 0.6
disk_free_limit.absolute = 50MB
"""
START_SECONDS = 120.0  # ten on a quiet machine


class RabbitMQ(Peer):
    name = "rabbitmq"
    package = "rabbitmq-server"
    one_thread = False
    start_seconds = 10.0

    def __init__(self, *, one_scheduler: bool = False) -> None:
        """one_scheduler: one thread for all its processes, in place of one a processor."""
        self._schedulers = " +S 1:1" if one_scheduler else ""

    def program(self) -> str | None:
        return which("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server") if which("epmd") else None

    def version(self) -> str:
        said_it = said(["dpkg-query", "-W", "-f", "${Version}", self.package])
        return said_it.partition("-")[0] if said_it[:1].isdigit() else ""

    def configuration(self) -> str:
        return f"enabled_plugins: [rabbitmq_mqtt].\n{CONFIGURATION}"

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        port, amqp, distribution, epmd = free_ports(4)
        text = CONFIGURATION.replace("AMQP_PORT", str(amqp)).replace("PORT", str(port))
        (folder / "rabbitmq.conf").write_text(text, encoding="utf-8")
        (folder / "enabled_plugins").write_text("[rabbitmq_mqtt].\n", encoding="utf-8")
        (folder / "rabbitmq-env.conf").write_text("", encoding="utf-8")
        environment = {
            "HOME": str(folder),  # the cookie
            "ERL_EPMD_PORT": str(epmd),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_CRASH_DUMP_BYTES": "0",
            "RABBITMQ_NODENAME": f"fanlight-bench-{port}@localhost",
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}" + self._schedulers,
            "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            # Not under systemd, but the way to have the program itself and no shell above it that waits.
            "RUNNING_UNDER_SYSTEMD": "1",
        }
        program = self.program()
        if program is None:
            raise LaunchError("rabbitmq-server is not installed")
        with (
            _epmd(environment),
            served([program], "completed with", cpu=cpu, environment=environment, seconds=START_SECONDS) as server,
        ):
            yield Up({"mqtt": port, "amqp": amqp}, server.pid)


@contextlib.contextmanager
def _epmd(environment: dict[str, str]) -> Iterator[None]:
    """Before RabbitMQ starts one itself, which would outlive it."""
    command = [which("epmd") or "epmd", "-d", "-port", environment["ERL_EPMD_PORT"]]
    with served(command, "epmd running", cpu=None, environment=environment):
        yield
