"""The files in examples/ are those that compose.yaml puts in force: they are read without a complaint."""

from pathlib import Path

import pytest

from fanlight_broker.cli import main
from fanlight_broker.core.permissions import Asker
from fanlight_broker.permitting.quota_file import load

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"


def test_the_permissions_have_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", "check", str(EXAMPLES / "permissions.toml")]) == 0
    assert "problem" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("group", "action", "topic", "allowed"),
    [
        ("devices", "publish", "site/pump7/data/temp", True),
        ("devices", "publish", "site/pump8/data/temp", False),
        ("devices", "subscribe", "site/#", False),
        ("services", "publish", "site/pump8/cmd/stop", True),
        ("viewers", "subscribe", "site/#", True),
        ("viewers", "publish", "site/pump7/state", False),
        ("nobody", "subscribe", "site/#", False),
        ("operators", "publish", "anything", True),
    ],
)
def test_each_group_may_do_what_the_file_says(group: str, action: str, topic: str, allowed: bool) -> None:
    wanted = [
        "permissions", "test", str(EXAMPLES / "permissions.toml"), "--user", "pump7", "--group", group,
        "--action", action, "--topic", topic,
    ]  # fmt: skip
    assert (main(wanted) == 0) is allowed


def test_the_quotas_are_read_and_devices_have_their_own() -> None:
    quotas = load(EXAMPLES / "quotas.toml")
    device = quotas.of(Asker(user="pump7", groups=frozenset({"devices"})), {})
    assert (device.connections, device.publish.messages) == (1, 20.0)
    assert quotas.of(Asker(user="alice"), {}).connections == 50


def test_compose_uses_them_and_no_shared_password() -> None:
    text = (ROOT / "compose.yaml").read_text()
    assert "FANLIGHT_PASSWORD" not in text
    for path in EXAMPLES.glob("*.toml"):
        assert f"./examples/{path.name}:" in text
