"""One operator's day, by command: from a mosquitto.conf with a bridge to a restart with nothing lost.

tests/dashboard does the same by page, and tests/deploy starts the broker that the Debian package installs.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from fanlight import sync
from fanlight_bench.launch import fanlightd
from tests.conftest import StartBroker, TestBroker
from tests.interop.bridged import free_port, up
from tests.system.shell import FANLIGHT, SECONDS

CONF = """\
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/data
connection cloud
address 127.0.0.1:{cloud}
topic sensors/# out 1
"""


def admin(broker: TestBroker, *arguments: str, expected: int = 0) -> list[dict[str, Any]]:
    """The lines of JSON that `fanlight admin` prints."""
    environment = {**os.environ, "FANLIGHT_HTTP_URL": broker.http_url, "FANLIGHT_URL": broker.url}
    done = subprocess.run(
        [*FANLIGHT, "admin", *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == expected, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_from_a_mosquitto_conf_to_a_restart_with_nothing_lost(tmp_path: Path, start_broker: StartBroker) -> None:
    far = start_broker()
    conf, folder = tmp_path / "mosquitto.conf", tmp_path / "fanlight"
    conf.write_text(CONF.format(port=free_port(), folder=tmp_path, cloud=far.mqtt_port))
    done = subprocess.run(
        [fanlightd(), "import", conf, "--to", folder], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (folder / "fanlight.toml").is_file(), done.stderr
    data = tmp_path / "store"
    broker = start_broker(config=folder / "fanlight.toml", data=data)
    up(broker, "cloud")
    with sync.connect(far.url) as cloud, sync.connect(broker.url, name="plant") as plant:
        arrived = cloud.subscribe("sensors.#")
        plant.publish("sensors.7.temp", b"20", receipt=True)
        assert next(iter(arrived)).topic == "sensors/7/temp"  # as MQTT spells it

    # Why does the pump not get its command? Its filter is misspelt.
    with sync.connect(broker.url, name="pump") as pump, sync.connect(broker.url, name="plant") as plant:
        pump.subscribe("comand.pump7")
        pump.flush()
        (why,) = admin(broker, "explain", "command.pump7", "--client", "pump")
        assert "comand.pump7" in json.dumps(why)
        # It goes; what is retained below a topic goes, too.
        (kicked,) = [row for row in admin(broker, "ls", "connections") if row["client"] == "pump"]
        admin(broker, "kick", str(kicked["connection"]), "--reason", "please update")
        for number in range(3):
            admin(broker, "retained", "set", f"state.{number}", "on")
        assert len(admin(broker, "retained", "ls", "state.#")) == 3
        admin(broker, "retained", "clear", "state.#", "--yes")
        assert admin(broker, "retained", "ls", "state.#") == []
        # What waits in a queue is there after a drain and a restart.
        worker = plant.subscribe("orders.#", durable="billing", ack=True, prefetch=1)
        for number in range(20):
            plant.publish("orders.eu", str(number).encode(), receipt=True)
        next(iter(worker)).ack()
        plant.flush()
    admin(broker, "drain", "--seconds", "1", "--stop", "--yes")
    assert broker.process.wait(SECONDS) == 0
    again = start_broker(config=folder / "fanlight.toml", data=data)
    up(again, "cloud")
    with sync.connect(again.url) as client:
        orders = client.subscribe("orders.#", durable="billing", ack=True)
        rest = []
        for message in orders:
            rest.append(int(message.payload))
            message.ack()
            if len(rest) == 19:
                break
    assert rest == list(range(1, 20))


def test_a_wrong_address_is_said_in_words() -> None:
    environment = {**os.environ, "FANLIGHT_HTTP_URL": f"http://127.0.0.1:{free_port()}"}
    done = subprocess.run(
        [*FANLIGHT, "admin", "status"], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
