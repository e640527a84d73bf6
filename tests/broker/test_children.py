"""Commands that a broker runs in processes of their own, wherever its package is."""

import subprocess
import sys
from pathlib import Path

# As the Debian package's command does: its folder is on the path of this process alone.
PARENT = """\
import asyncio, sys
sys.path[1:1] = {path!r}
from pathlib import Path
from fanlight_broker.authentication import Authentication
from fanlight_broker.config import Settings
asyncio.run(Authentication(Settings(users_file=Path({file!r})))._change("add", "eve", "wonder", "--group=ops"))
"""


def test_a_command_finds_the_package_where_only_its_parent_does_and_nothing_of_the_working_directory(
    tmp_path: Path,
) -> None:
    file = tmp_path / "users.toml"
    (tmp_path / "argparse.py").write_text("raise SystemExit('imported from the working directory')")
    bare = getattr(sys, "_base_executable", sys.executable)  # without the packages of this environment
    code = PARENT.format(path=[each for each in sys.path if each], file=str(file))
    done = subprocess.run(
        [bare, "-I", "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, timeout=120, text=True,
        capture_output=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "eve" in file.read_text()
