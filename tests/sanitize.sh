#!/bin/sh
# The compiled modules under AddressSanitizer, UndefinedBehaviorSanitizer and Cython's own checks.
#
#     tests/sanitize.sh [pytest arguments]        default: tests/matchcore, what drives the compiled broker without sockets,
#                                                 tests/debug, and two minutes of rubbish for a running broker
#
# A copy of the checkout is built in a temporary folder, never in place: every .pyx of matchcore and
# of the broker with -fsanitize=address,undefined -O1 and with bounds, wrap-around and None checks
# compiled in. It is a debug build, too: wire/debug.pxd. bench and research are left out. The tests then run from the copy,
# and tests/fuzz/running.py sends a running broker changed packets for FUZZ_SECONDS (120; its seed is printed, FUZZ_SEED
# repeats one). PYTHON names the interpreter (default .venv/bin/python);
# it needs the development dependencies. KEEP=folder builds there and keeps it, for a quicker next run.
#
# Python's own allocator is bypassed, so that every object is a block the sanitizer knows. Leaks are not
# looked for here: the interpreter leaves some by design; tests/matchcore counts the bytes instead.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
case $python in */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; esac

if [ -n "${KEEP:-}" ]; then
    mkdir -p "$KEEP"
    tree=$(cd "$KEEP" && pwd)
else
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
    trap 'exit 130' INT TERM
fi

# Sources only: what was built in place must not be found in the copy.
(cd "$root" && tar cf - --exclude=.git --exclude='.venv*' --exclude='*.so' --exclude='*.c' --exclude=__pycache__ \
    --exclude='.*_cache' --exclude=.hypothesis --exclude=build --exclude=dist --exclude='*.egg-info' .) | (cd "$tree" && tar xf -)

# A process for each: Cython remembers where it found a .pxd, as a path from its working directory.
for package in matchcore/matchcore broker/fanlight_broker; do
cd "$tree/${package%/*}"
PYTHONPATH="$tree/matchcore" CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g \
-DFANLIGHT_DEBUG -DCYTHON_USE_FREELISTS=0" \
LDFLAGS="-fsanitize=address,undefined" "$python" - "${package#*/}" <<'PYTHON'
import contextlib
import io
import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler.Errors import CompileError
from setuptools import Distribution, Extension

CHECKS = {"boundscheck": True, "wraparound": True, "initializedcheck": True}


def build(package):
    """Build all modules of a package in place; the working directory is the distribution's."""
    compiled = []
    for path in sorted(Path(package).rglob("*.pyx")):
        extension = Extension(".".join(path.with_suffix("").parts), [str(path)], extra_compile_args=["-O1"])
        try:
            # A None check may raise, so Cython refuses it where a class is used without the GIL.
            with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                compiled += cythonize([extension], compiler_directives={**CHECKS, "nonecheck": True}, quiet=True)
        except CompileError:
            print(f"sanitize: {extension.name} is compiled without None checks")
            compiled += cythonize([extension], compiler_directives=CHECKS, quiet=True)
    distribution = Distribution({"name": "sanitized", "ext_modules": compiled})
    command = distribution.get_command_obj("build_ext")
    command.inplace = True
    command.parallel = os.cpu_count()  # one after the other it is a quarter of an hour
    command.ensure_finalized()
    command.run()


build(sys.argv[1])
PYTHON
done
cd "$tree"

compiler=${CC:-gcc}
LD_PRELOAD="$($compiler -print-file-name=libasan.so) $($compiler -print-file-name=libstdc++.so)"
export LD_PRELOAD
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH="$tree:$tree/matchcore:$tree/broker:$tree/archive:$tree/pipeline:$tree/bench:$tree/clients/python/src"
# The data sets lie beside the checkout, not beside the copy; without them the tests have samples.
if [ -z "${FANLIGHT_REAL_DATA:-}" ] && [ -d "$root/../shared/data/market" ]; then
    export FANLIGHT_REAL_DATA="$root/../shared/data"
fi

"$python" -c "
import pathlib, matchcore.filters, fanlight_broker.wire.fanout
for module in (matchcore.filters, fanlight_broker.wire.fanout):
    assert pathlib.Path(module.__file__).is_relative_to('$tree'), module.__file__
"
fuzz=
if [ $# -eq 0 ]; then
    fuzz=yes
    set -- tests/matchcore tests/debug
    for folder in tests/broker/wire tests/broker/core tests/broker/net tests/broker/protocols; do
        if [ -d "$folder" ]; then set -- "$@" "$folder"; fi
    done
fi
# What a sanitizer says goes to the descriptor, and ends the process: pytest must not keep it.
"$python" -m pytest -p no:cacheprovider --capture=sys "$@"
[ -z "$fuzz" ] || "$python" -m tests.fuzz.running "${FUZZ_SECONDS:-120}" ${FUZZ_SEED:-}
