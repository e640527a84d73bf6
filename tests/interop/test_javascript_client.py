"""clients/js in Node: its own tests, by Node's test runner, against brokers that they start themselves."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from fanlight_bench.launch import fanlightd
from tests.certificates import Certificates
from tests.require import ROOT, command

TESTS = ROOT / "clients" / "js" / "test"
SECONDS = 300


@pytest.mark.parametrize("file", sorted(each.name for each in TESTS.glob("*.test.js")))
def test_the_tests_of_the_javascript_client_pass(file: str, tmp_path: Path) -> None:
    node = command("node", package="nodejs")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    major = int(version.strip().lstrip("v").partition(".")[0])
    if major < 20:
        pytest.skip(f"needs Node.js 20, which `apt-get install nodejs` may not have; this is {version.strip()}")
    flags = ["--experimental-websocket"] if major < 22 else []
    signed = Certificates(tmp_path)
    names = {
        "FANLIGHTD": fanlightd(),
        "FANLIGHT_TEST_CERTIFICATE": str(signed.server), "NODE_EXTRA_CA_CERTS": str(signed.ca),
    }  # fmt: skip
    done = subprocess.run(
        [node, *flags, "--test", "--test-reporter=tap", str(TESTS / file)],
        capture_output=True, text=True, timeout=SECONDS, check=False, env={**os.environ, **names},
    )  # fmt: skip
    failed = re.findall(r"^not ok .*(?:\n .*)*", done.stdout, re.MULTILINE)
    assert done.returncode == 0, "\n".join(failed) or done.stdout + done.stderr
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 0
