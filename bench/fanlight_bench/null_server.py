"""`python -m fanlight_bench serve-null`: the null broker as a process, announced as a real broker announces itself."""

import json
import signal
import socket
import sys
import types

from fanlight_bench.launch import Server
from fanlight_bench.null_broker import NullBroker

LIFE_SECONDS = 3600.0  # the server ends after this time even if the benchmark was killed
LISTENERS = ("native", "mqtt")  # one port: a client's first octet decides


def serve(port: int, seconds: float = LIFE_SECONDS) -> None:
    """Serve on 127.0.0.1 until SIGTERM, or for `seconds`. Raises OSError when the port is taken."""
    signal.signal(signal.SIGTERM, _stop)
    with socket.create_server(("127.0.0.1", port), backlog=1024) as listener:
        listener.setblocking(False)
        host, bound = listener.getsockname()
        for listener_name in LISTENERS:
            line = {"event": "listening", "listener": listener_name, "host": host, "port": bound}
            sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        NullBroker(listener).run(seconds)


def start(cpu: int | None = None) -> Server:
    """The null broker as a subprocess."""
    command = [sys.executable, "-m", "fanlight_bench", "serve-null", "--port", "0"]
    return Server(command, listeners=LISTENERS, cpu=cpu)


def _stop(number: int, frame: types.FrameType | None) -> None:
    raise SystemExit(0)
