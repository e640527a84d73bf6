#!/bin/sh
# Print constraints-hashes.txt: make_hashes.sh BIN, the folder of an environment that has uv.
set -eu
cd "$(dirname "$0")/.."
echo '# Made from constraints.txt by `make hashes`: what is shipped with ours, and what may be in a file of that name.'
"$1/python" scripts/dependencies.py broker:jwt broker:archive broker:otel clients/python:cli clients/python:uvloop pipeline:spark pipeline:kafka pipeline:lakehouse pipeline:iceberg bench |
  "$1/uv" pip compile --quiet --no-header --no-annotate --universal --python-version 3.11 --generate-hashes \
    --constraint constraints.txt -
