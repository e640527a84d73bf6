"""mosquitto_pub, mosquitto_sub and mosquitto_rr, as one calls them from a shell.

    with Sub(port, "-t", "a/#", "-q", 1) as sub:          has subscribed when it is there
        pub(port, "-t", "a/b", "-m", "hello")
        sub.messages(1)
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from fanlight_bench.launch import Server
from tests.require import command

WAIT_SECONDS = 60.0
PACKAGE = "mosquitto-clients"
MARK = "=MESSAGE="
FIELDS = ("topic", "qos", "retain", "content_type", "response_topic", "correlation", "user", "payload")
FORMAT = "|".join((MARK, "%t", "%q", "%r", "%C", "%R", "%D", "%P", "%x"))
VERSION = {3: "mqttv311", 5: "mqttv5"}


@dataclass(frozen=True, slots=True)
class Printed:
    """A message as mosquitto_sub has printed it. What there is not is empty."""

    topic: str
    qos: int
    retain: bool
    content_type: str
    response_topic: str
    correlation: str
    user: str
    payload: bytes


def read(line: str) -> Printed:
    _, topic, qos, retain, content_type, response_topic, correlation, user, payload = line.split("|")
    return Printed(
        topic, int(qos), retain == "1", content_type, response_topic, correlation, user, bytes.fromhex(payload)
    )


def arguments(program: str, port: int, version: int, *more: object) -> list[str]:
    """The command. `stdbuf`: a line when it is said, not when there are 4 KiB of them."""
    to = ["-h", "127.0.0.1", "-p", port, "-V", VERSION[version]]
    path = command(program, package=PACKAGE)
    return [command("stdbuf", package="coreutils"), "-oL", path, *(str(each) for each in [*to, *more])]


def run(program: str, port: int, *more: object, version: int = 5, given: bytes = b"") -> tuple[int, str, str]:
    """Run it to its end: exit status, output, complaints."""
    done = subprocess.run(
        arguments(program, port, version, *more), input=given, capture_output=True, timeout=WAIT_SECONDS, check=False
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def pub(port: int, *more: object, version: int = 5, given: bytes = b"") -> None:
    """Publish; it must succeed."""
    status, output, complaint = run("mosquitto_pub", port, *more, version=version, given=given)
    assert (status, output, complaint) == (0, "", "")


class Sub(Server):
    """mosquitto_sub, which has subscribed when it is made."""

    def __init__(self, port: int, *more: object, version: int = 5, ready: str = "Subscribed (") -> None:
        command = arguments("mosquitto_sub", port, version, "-d", "-F", FORMAT, *more)
        super().__init__(command, listeners=())
        try:
            self.wait_for_line(ready, WAIT_SECONDS)
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *error: object) -> None:
        # Not by SIGTERM: its handler takes locks, and stands still for ever where the program has them just then.
        self.kill()

    @property
    def printed(self) -> list[Printed]:
        return [read(line) for line in list(self.lines) if line.startswith(MARK)]

    def messages(self, count: int) -> list[Printed]:
        """All so far, when they are `count`."""
        self.wait_for(lambda: len(self.printed) >= count, WAIT_SECONDS)
        return self.printed

    def until(self, topic: str) -> list[Printed]:
        """All before the first message of `topic`."""
        self.wait_for(lambda: any(message.topic == topic for message in self.printed), WAIT_SECONDS)
        found = self.printed
        return found[: next(place for place, message in enumerate(found) if message.topic == topic)]


def file_of(folder: Path, content: bytes) -> Path:
    path = folder / "payload"
    path.write_bytes(content)
    return path
