#!/bin/sh
# Wheels for others and source distributions, into the folder OUT: build_wheels.sh OUT
#
# Wheels with compiled modules are made by cibuildwheel, for each Python and for manylinux or macOS, as the table
# [tool.cibuildwheel] of each pyproject.toml says; the others are of Python alone. In this order each finds what it is
# compiled against among the wheels made before.
set -eu
cd "$(dirname "$0")/.."
out=$1
mkdir -p "$out"
out=$(cd "$out" && pwd)
export PIP_FIND_LINKS="$out" # also for source distributions, which are made where matchcore can be installed
for folder in matchcore permissions archive broker clients/python pipeline bench; do
  python -m build --sdist --outdir "$out" "$folder"
  if [ -e "$folder/setup.py" ]; then
    # Inside the container of manylinux the folder has another name: cibuildwheel mounts the machine's files at /host.
    CIBW_ENVIRONMENT_LINUX="PIP_FIND_LINKS=/host$out" CIBW_ENVIRONMENT_MACOS="PIP_FIND_LINKS=$out" \
      python -m cibuildwheel --output-dir "$out" "$folder"
  else
    python -m build --wheel --outdir "$out" "$folder"
  fi
done
