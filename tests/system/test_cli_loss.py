"""`fanlight sub` over the loss of its broker: it says what happened, that it goes on trying, and what that costs."""

import os
import re

from tests.conftest import StartBroker
from tests.system.shell import SECONDS, Shell


def test_sub_says_that_it_connects_again_and_what_is_missed_meanwhile(start_broker: StartBroker) -> None:
    first = start_broker()
    shell = Shell({**os.environ, "FANLIGHT_URL": first.url})
    sub = shell.start("sub", "cli.loss", "--count", "1")
    assert sub.stderr is not None
    try:
        first.terminate()
        lost = sub.stderr.readline().decode().rstrip()
        assert lost.startswith("fanlight sub: the broker closed the connection: shutting_down")
        assert lost.endswith("Trying to connect again until it works or Ctrl-C; what is published meanwhile is missed")
        second = start_broker(native_port=first.port)
        again = sub.stderr.readline().decode()
        assert re.fullmatch(rf"fanlight sub: connected again to {second.url} after \d+\.\d s\n", again)
        assert shell("pub", "cli.loss", "back", "--receipt") == (0, b"1\n", "")
        assert sub.communicate(timeout=SECONDS)[0] == b"cli.loss back\n"
    finally:
        if sub.poll() is None:
            sub.kill()
            sub.communicate()
