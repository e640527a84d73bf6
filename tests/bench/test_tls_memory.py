"""`python -m fanlight_bench tls-memory`: its report, and that a connection is charged for what it takes."""

import json

import pytest

from fanlight_bench.tls_memory import LARGE_BYTES, main
from tests import require

pytestmark = pytest.mark.release

CONNECTIONS = 100
SLACK = 16 * 1024  # 1.6 MB in all: what an allocator takes at once
# Under uvloop the buffer for what is sent is not charged (net/tls_memory.py), but for 1.5 times what is read of it. How
# much is read at once depends on who is scheduled, and so does what is left over.
LARGE_SLACK = 64 * 1024


@pytest.mark.parametrize("tcp", ["epoll", "uvloop"])
def test_a_connection_by_tls_is_charged_for_what_it_takes(tcp: str, capsys: pytest.CaptureFixture[str]) -> None:
    require.command("openssl", package="openssl")
    assert main(["--connections", str(CONNECTIONS), "--tcp", tcp]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["connections"], report["arguments"]) == (CONNECTIONS, ["--tcp", tcp])
    found = report["bytes"]
    assert found["handshake_charged"] > found["tls_charged"] > 0
    assert found["handshake"] < found["handshake_charged"] + SLACK
    assert found["tls"] < found["tls_charged"] + SLACK
    # What is not charged is bounded by the largest write, of which OpenSSL may have a third more.
    most = found["received_charged"] if tcp == "epoll" else LARGE_BYTES * 4 // 3
    assert found["received"] < most + SLACK
    assert found["tls"] + found["large"] < found["tls_charged"] + found["large_charged"] + LARGE_SLACK
