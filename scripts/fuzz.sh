#!/bin/sh
# Fuzz each target for FUZZ_SECONDS: the decoders (tests/fuzz/__main__.py), then the matcher (tests/fuzz/machines.py).
#
#   fuzz.sh PYTHON      the interpreter with the `fuzz` dependency group
#
# The corpora stay in build/fuzz and serve the next run. An input that breaks something is left there as well.
set -eu

python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
status=0
for target in native mqtt_packets mqtt_selectors topics selectors; do
  corpus=$root/build/fuzz/$target
  mkdir -p "$corpus"
  echo "--- fuzzing $target for ${FUZZ_SECONDS:-60} s"
  (cd "$root/build/fuzz" && PYTHONPATH=$root "$python" -m tests.fuzz "$target" "${FUZZ_SECONDS:-60}" "$corpus") || status=1
done
echo "--- fuzzing matchcore for ${FUZZ_SECONDS:-60} s"
(cd "$root" && PYTHONPATH=$root "$python" -m tests.fuzz.machines "${FUZZ_SECONDS:-60}") || status=1
exit $status
