"""`python -m fanlight_bench tls-memory`: its report, and that a connection is charged for what it takes."""

import json

import pytest

from fanlight_bench.tls_memory import main
from tests import require

CONNECTIONS = 100
SLACK = 16 * 1024  # 1.6 MB in all: what an allocator takes at once
LARGE_SLACK = 64 * 1024  # a tenth of the buffers that uvloop lets grow, and how they grow depends on who is scheduled


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
    assert found["tls"] + found["large"] < found["tls_charged"] + found["large_charged"] + LARGE_SLACK
