#!/bin/sh
# Fuzz each target for FUZZ_SECONDS; see tests/fuzz/__main__.py.
#
#   fuzz.sh PYTHON      the interpreter with the `fuzz` dependency group
#
# The corpora stay in build/fuzz and serve the next run. An input that breaks something is left there as well.
set -eu

python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
status=0
for target in native topics; do
  corpus=$root/build/fuzz/$target
  mkdir -p "$corpus"
  echo "--- fuzzing $target for ${FUZZ_SECONDS:-60} s"
  (cd "$root/build/fuzz" && PYTHONPATH=$root "$python" -m tests.fuzz "$target" "${FUZZ_SECONDS:-60}" "$corpus") || status=1
done
exit $status
