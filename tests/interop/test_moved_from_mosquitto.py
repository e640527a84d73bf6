"""A mosquitto with users, an ACL and a bridge becomes a Fanlight, by `fanlightd import`: its clients notice nothing."""

import subprocess
from pathlib import Path

from fanlight_bench.launch import fanlightd
from tests.conftest import StartBroker
from tests.interop.bridged import MosquittoBroker, free_port, up
from tests.interop.mosquitto import Sub, pub, run
from tests.interop.test_bridge_mosquitto import PASSWORDS

ALICE = ("-u", "plant", "-P", "sesame")
CONF = """\
allow_anonymous false
password_file {folder}/users
acl_file {folder}/acl
connection cloud
address 127.0.0.1:{cloud}
topic sensors/# out 1 "" site/7/
topic commands/# in 1 "" site/7/
"""


def test_the_same_conf_serves_the_same_clients(tmp_path: Path, start_broker: StartBroker) -> None:
    users, acl, cloud, port = tmp_path / "users", tmp_path / "acl", free_port(), free_port()
    users.write_text(PASSWORDS)
    users.chmod(0o600)
    acl.write_text("user plant\ntopic sensors/#\ntopic read commands/#\n")
    conf = CONF.format(folder=tmp_path, cloud=cloud)
    with MosquittoBroker(tmp_path / "cloud", cloud):
        with MosquittoBroker(tmp_path / "edge", port, conf):
            as_before(port, cloud)
        done = subprocess.run(
            [fanlightd(), "import", tmp_path / "edge" / "mosquitto.conf", "--to", tmp_path / "new"],
            capture_output=True, text=True, timeout=120, check=False,
        )
        assert "per_listener_settings" not in done.stderr
        broker = start_broker(config=tmp_path / "new" / "fanlight.toml")
        up(broker, "cloud")
        as_before(broker.mqtt_port, cloud)


def as_before(port: int, cloud: int) -> None:
    """What the users of the old broker rely on."""
    with Sub(cloud, "-t", "site/7/#", "-q", 1, version=3) as there, \
            Sub(port, *ALICE, "-t", "commands/#", "-q", 1, version=3) as here:
        pub(port, *ALICE, "-t", "sensors/t", "-m", "21", "-q", 1, "-r", version=3)
        assert (there.messages(1)[0].topic, there.printed[0].payload) == ("site/7/sensors/t", b"21")
        pub(cloud, "-t", "site/7/commands/stop", "-m", "1", "-q", 1, version=3)
        assert here.messages(1)[0].topic == "commands/stop"
    for login in ((), ("-u", "plant", "-P", "wrong")):
        status, _, complaint = run("mosquitto_pub", port, *login, "-t", "sensors/t", "-m", "1", version=3)
        assert status != 0, complaint
