#!/bin/sh
# Line coverage of Python and Cython: `make coverage`. Prints it by folder, and the files below 80 % with their reasons.
#
#     coverage.sh PYTHON [FOLDER or FILE of tests]...    default: tests of matchcore, broker, archive, conformance and system
#
# Each has a pytest of its own, as many at once as there are processors: with tracing a crash or a hang is possible, and
# costs only what has that process. COVERAGE_SECONDS (3600) is how long each may take.
#
# A copy of the checkout is built in build/coverage with line tracing (slow: several times the time of `make test`), never in
# place. Brokers that the tests start are measured, too. Nothing fails for a number; docs/coverage.md has the reasons.
set -eu

python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1"); shift
root=$(cd "$(dirname "$0")/.." && pwd)
tree=$root/build/coverage
mkdir -p "$tree"
# What an earlier run has left of files that are gone or renamed must not be built, or tested, again.
find "$tree" -type f ! -name '*.so' ! -name '*.c' ! -name '*.o' -delete
(cd "$root" && tar cf - --exclude=.git --exclude='.venv*' --exclude='*.so' --exclude='*.c' --exclude=__pycache__ \
    --exclude='.*_cache' --exclude=.hypothesis --exclude=build --exclude=dist --exclude='*.egg-info' .) | (cd "$tree" && tar xf -)
find "$tree" -name '*.so' -delete  # built with other flags, or from other sources
cd "$tree"
CFLAGS="-O0 -g0 -DCYTHON_TRACE=1 -DCYTHON_TRACE_NOGIL=1 -DCYTHON_USE_SYS_MONITORING=0" "$python" - <<'PYTHON'
import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Distribution, Extension

tree = Path.cwd()
for folder, package in (("matchcore", "matchcore"), ("broker", "fanlight_broker")):
    os.chdir(tree / folder)
    modules = [
        Extension(".".join(path.with_suffix("").parts), [str(path)]) for path in sorted(Path(package).rglob("*.pyx"))
    ]
    distribution = Distribution({"ext_modules": cythonize(modules, compiler_directives={"linetrace": True}, quiet=True)})
    command = distribution.get_command_obj("build_ext")
    command.inplace = True
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()
PYTHON

cat > "$tree/.coveragerc" <<RC
[run]
plugins = Cython.Coverage
core = ctrace
parallel = true
patch = subprocess
sigterm = true
data_file = $tree/.coverage
omit = *.pxd
source = $tree/matchcore/matchcore
    $tree/permissions/fanlight_permissions
    $tree/broker/fanlight_broker
    $tree/archive/fanlight_archive
RC
rm -f "$tree"/.coverage*[0-9A-Za-z].* 2>/dev/null || true
export PYTHONPATH="$tree:$tree/matchcore:$tree/permissions:$tree/broker:$tree/archive:$tree/pipeline:$tree/bench:$tree/clients/python/src"
export COVERAGE_RCFILE="$tree/.coveragerc"
[ $# -gt 0 ] || set -- tests/broker/wire tests/system tests/broker/protocols tests/conformance tests/broker/core tests/matchcore \
    tests/broker/net tests/broker/storage tests/broker/admin tests/broker/auth tests/archive $(ls tests/broker/*.py)
# Threads without the GIL must not be traced: Cython's trace function is not made for them, and the process ends.
skipped="--ignore=tests/matchcore/test_linearizable.py --ignore=tests/matchcore/test_threads.py"
# A test that fails because everything is slow says so, and does not keep the figures from being printed.
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} timeout -s INT "${COVERAGE_SECONDS:-3600}" \
    "$python" -m coverage run --rcfile="$tree/.coveragerc" -m pytest -q -p no:cacheprovider -p scripts.coverage_plugin $skipped {} \
    || echo "coverage: some tests failed"
"$python" -m coverage combine --rcfile="$tree/.coveragerc" --quiet
"$python" -m coverage json --rcfile="$tree/.coveragerc" --quiet -o "$root/build/coverage.json" --ignore-errors
"$python" "$root/scripts/coverage_report.py" "$root/build/coverage.json" "$tree"
