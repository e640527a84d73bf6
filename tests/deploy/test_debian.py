"""The Debian package: built and checked by Debian's tools, installed in a root of its own, and started there."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import require
from tests.distributions import OURS as OURS_IN
from tests.distributions import ROOT, built_once, one, run

OURS = ("matchcore", "fanlight-permissions", "fanlight-broker", "fanlight")
STOP_SECONDS = 60
LISTENERS = ("native", "mqtt", "mqtt-websocket", "amqp", "http")


@dataclass(frozen=True, slots=True)
class Root:
    """A folder with a Debian in it that has the package installed."""

    folder: Path
    package: Path

    def command(self, *command: str, user: str = "fanlight", group: str = "fanlight") -> list[str]:
        inside = f"--userspec={user}:{group}"
        return ["chroot", inside, str(self.folder), "/usr/bin/env", "-i", "PATH=/usr/bin:/bin", *command]

    def output(self, *command: str, user: str = "fanlight", group: str = "fanlight") -> str:
        return run(*self.command(*command, user=user, group=group))


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, shared_folder: Path) -> Path:
    for tool, package in (("dh", "debhelper"), ("lintian", "lintian"), ("mmdebstrap", "mmdebstrap")):
        require.command(tool, package=package)
    if os.getuid() != 0:
        pytest.skip("needs root: nobody else can enter another root")
    system = run("/usr/bin/python3", "-c", "import sys; print(sys.version_info[:2])")
    if system != f"{sys.version_info[:2]}\n":
        pytest.skip(f"needs the system's Python for its package, {system.strip()}: make test PYTHON=/usr/bin/python3")
    work = tmp_path_factory.mktemp("debian")
    wheels = built_once(shared_folder / "distributions").wheels
    (work / "wheels").mkdir()
    for name in OURS:
        shutil.copy(wheels[name], work / "wheels")
    run(
        "sh", ROOT / "scripts" / "build_deb.sh", sys.executable, work / "out", work / "wheels",
        FANLIGHT_DEB_OPTIONS="-Znone",  # xz takes half a minute
    )
    return one(work / "out", "fanlight_*.deb")


@pytest.fixture(scope="module")
def without_libraries(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package less the libraries of others, which are most of its files."""
    folder = tmp_path_factory.mktemp("ours") / "fanlight"
    run("dpkg-deb", "--raw-extract", package, folder)
    libraries = folder / "usr" / "lib" / "fanlight"
    kept = {OURS_IN[name][1] for name in OURS}
    others = {each.name for each in libraries.iterdir() if each.name.partition("-")[0] not in kept}
    for name in others:
        there = libraries / name
        shutil.rmtree(there) if there.is_dir() else there.unlink()
    sums = folder / "DEBIAN" / "md5sums"
    lines = sums.read_text(encoding="utf-8").splitlines(keepends=True)
    sums.write_text("".join(line for line in lines if (folder / line.split(maxsplit=1)[1].rstrip("\n")).exists()))
    made = folder.parent / package.name
    run("dpkg-deb", "-Znone", "--build", folder, made)
    return made


@pytest.fixture(scope="module")
def root(package: Path) -> Iterator[Root]:
    """The package's dependencies come from where this machine's apt has its own from."""
    sources = [*Path("/etc/apt/sources.list.d").glob("*.sources"), *Path("/etc/apt/sources.list.d").glob("*.list")]
    sources = [*Path("/etc/apt").glob("sources.list"), *sources]
    series = re.search(r"VERSION_CODENAME=(\S+)", Path("/etc/os-release").read_text(encoding="utf-8"))
    assert series is not None
    folder = package.parent.parent / "root"
    text = b"\n".join(source.read_bytes() for source in sources)
    done = subprocess.run(
        [
            "mmdebstrap", "--mode=root", "--variant=apt", f"--include={package}", series[1], folder, "-",
            "--dpkgopt=force-unsafe-io",  # no sync of each file: the root is thrown away
            "--hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount",  # the package is a file of this machine
        ],
        input=text, capture_output=True, check=False, timeout=1_800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    yield Root(folder, package)
    shutil.rmtree(folder)


def test_nothing_in_it_says_where_it_was_built(package: Path) -> None:
    there = run("dpkg-deb", "--contents", package)
    assert "/numpy-" in there
    assert "direct_url.json" not in there


def lint(package: Path) -> tuple[int, str]:
    """What lintian finds, but for the compression, which is another one in a release."""
    done = subprocess.run(
        [
            "lintian", "--fail-on", "error,warning", "--tag-display-limit", "0", "--allow-root", package,
            "--suppress-tags", "uses-no-compression-for-data-tarball,uses-no-compression-for-control-tarball",
        ],
        capture_output=True, text=True, check=False, timeout=1_800,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_lintian_finds_no_errors_in_what_is_ours(without_libraries: Path) -> None:
    code, found = lint(without_libraries)
    assert code == 0, found


@pytest.mark.release  # 45 s, nearly all of it for libraries that change with constraints.txt alone
def test_lintian_finds_no_errors(package: Path) -> None:
    code, found = lint(package)
    assert code == 0, found


def test_the_broker_belongs_to_nobody_else_and_its_settings_are_its_own(root: Root) -> None:
    assert root.output("id", "-un") == "fanlight\n"
    owners = root.output("stat", "-c", "%U:%G %a", "/etc/fanlight/fanlight.toml", "/var/lib/fanlight", user="root")
    assert owners == "root:fanlight 640\nfanlight:fanlight 750\n"
    conffiles = run("dpkg-deb", "--info", root.package, "conffiles")
    assert conffiles == "/etc/fanlight/fanlight.toml\n"


def test_the_unit_is_valid_and_starts_what_is_there(root: Root) -> None:
    require.command("systemd-analyze", package="systemd")
    unit = "/lib/systemd/system/fanlight.service"
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", f"--root={root.folder}", "fanlight.service"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    # The root has no systemd, so that no other unit is found there.
    lines = [line for line in done.stderr.splitlines() if "Unit sysinit.target not found" not in line]
    ours = [line for line in lines if "fanlight" in line]
    assert not ours, done.stderr
    text = (root.folder / unit[1:]).read_text(encoding="utf-8")
    (started,) = re.findall(r"^ExecStart=(\S+) serve --config (\S+)$", text, re.MULTILINE)
    assert all((root.folder / path[1:]).exists() for path in started)


def test_each_command_has_a_manual_page_and_completion(root: Root) -> None:
    there = run("dpkg-deb", "--contents", root.package)
    for path in ("man/man1/fanlight.1.gz", "man/man8/fanlightd.8.gz", "bash-completion/completions/fanlight"):
        assert f"./usr/share/{path}\n" in there


def test_both_commands_say_the_version_of_the_package(root: Root) -> None:
    version = run("dpkg-deb", "--field", root.package, "Version").strip()
    assert version in root.output("fanlightd", "--version")
    assert version in root.output("fanlight", "--version")
    assert root.output("fanlightd", "check-config", "--config", "/etc/fanlight/fanlight.toml")


def test_a_broker_started_as_the_unit_does_keeps_a_message_over_a_restart(root: Root, tmp_path: Path) -> None:
    """The unit's own command, user and folder; the root has no systemd."""
    flags = [part for name in LISTENERS for part in (f"--{name}-port", "0")]
    serve = root.command(
        "FANLIGHT_LOG_FORMAT=json", "fanlightd", "serve", "--config", "/etc/fanlight/fanlight.toml", *flags
    )
    for run_number in range(2):
        with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as broker:
            try:
                url = _native_url(broker)
                if run_number == 0:
                    root.output("fanlight", "queue", "add", "orders", "shop.#", "--url", url)
                    assert root.output("fanlight", "pub", "shop.new", "42", "--receipt", "--url", url)
                else:
                    shown = root.output("fanlight", "queue", "peek", "orders", "--url", url)
                    assert "42" in shown
            finally:
                broker.send_signal(signal.SIGTERM)
                assert broker.wait(STOP_SECONDS) == 0


def _native_url(broker: "subprocess.Popen[str]") -> str:
    """Where a broker listens natively, once it accepts clients."""
    assert broker.stdout is not None
    said, url = [], ""
    for line in broker.stdout:
        said.append(line)
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "listening" and "fanlight://" in event["try_it"]:
            url = re.findall(r"fanlight://[\d.:]+", event["try_it"])[0]
        if event.get("event") == "ready":
            return url
    raise AssertionError("the broker has ended:\n" + "".join(said))
