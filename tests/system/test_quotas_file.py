"""A broker with a file of quotas, as a process: what it refuses, how it is reloaded, what it says of a fault."""

import os
import signal
import subprocess
from pathlib import Path

from fanlight_bench.launch import fanlightd
from tests.conftest import StartBroker
from tests.system.wire import Peer, Type, subscribe


async def test_a_quota_holds_and_a_reload_reaches_who_is_connected(start_broker: StartBroker, tmp_path: Path) -> None:
    quotas = tmp_path / "quotas.toml"
    quotas.write_text("[[quota]]\nsubscriptions = 1\n")
    broker = start_broker(quotas=quotas)
    broker.may_complain = True
    async with await Peer.connect(broker.port) as peer:
        await peer.subscribe(1, "a")
        await peer.send(subscribe(7, 2, "b"))
        assert (await peer.expect(Type.ERROR))[1:3] == [7, "limit_exceeded"]
        quotas.write_text("[[quota]]\nsubscriptions = 2\n")
        os.kill(broker.pid, signal.SIGHUP)
        broker.wait_for_line('"reloaded"')
        await peer.subscribe(3, "b")
        quotas.write_text("[[quota]]\nsubscription = 3\n")
        os.kill(broker.pid, signal.SIGHUP)
        broker.wait_for_line('"reload_failed"')
        await peer.send(subscribe(9, 4, "c"))
        assert (await peer.expect(Type.ERROR))[1:3] == [9, "limit_exceeded"]


def test_a_broker_does_not_start_with_a_wrong_file(tmp_path: Path) -> None:
    (tmp_path / "q.toml").write_text("[[quota]]\nconections = 1\n")
    done = subprocess.run(
        [fanlightd(), "serve", "--native-port", "0", "--quotas", str(tmp_path / "q.toml")], capture_output=True,
        text=True, timeout=120,
    )
    assert done.returncode == 2
    assert "q.toml, entry 1: there is no quota 'conections'" in done.stderr
