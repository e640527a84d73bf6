#!/bin/sh
# Build the Debian package: `make deb` does it. Makes wheels of ours, loads those of the libraries with pip, and leaves
# the package in OUT.
#
#   build_deb.sh PYTHON OUT [WHEELS]
#
# PYTHON  any Python with pip, of the version that the package is for (the system's python3 runs what it contains), with
#         the checkout and argparse-manpage installed: manual pages and completion are made from the commands
# WHEELS  a folder with wheels of ours, to be taken as they are
set -eu
cd "$(dirname "$0")/.."
python=$1 out=$2 wheels=${3:-}

command -v dpkg-buildpackage >/dev/null || { echo 'build_deb: please install: debhelper python3-pip' >&2; exit 1; }
version=$(cat VERSION)
series=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
next=$(python3 -c 'import sys; print("%d.%d" % (sys.version_info[0], sys.version_info[1] + 1))')
"$python" -c "import sys; sys.exit(0 if '%d.%d' % sys.version_info[:2] == '$series' else 1)" || {
  echo "build_deb: the system's python3 is $series; wheels made by $python would not fit" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=$work/fanlight-$version
mkdir -p "$source/wheels" "$source/commands" "$out"
"$python" scripts/dependencies.py broker:jwt clients/python:cli > "$work/requirements.txt"
"$python" -m pip wheel --quiet --wheel-dir "$source/wheels" -c constraints.txt -r "$work/requirements.txt"
if [ -n "$wheels" ]; then
  cp "$wheels"/*.whl "$source/wheels"
else
  for folder in $("$python" scripts/dependencies.py --folders broker:jwt clients/python:cli); do
    "$python" -m pip wheel --quiet --wheel-dir "$source/wheels" --no-deps --no-build-isolation "./$folder"
  done
fi

cp -r deploy/debian "$source/debian"
mv "$source/debian/fanlight.toml" "$source"
sed -i "s/@PYTHON@/$series/; s/@PYTHON_NEXT@/$next/" "$source/debian/control"
cp deploy/systemd/fanlight.service "$source/debian/fanlight.service"
printf '3.0 (native)\n' > "$work/format"; mkdir "$source/debian/source"; mv "$work/format" "$source/debian/source/format"
mkdir "$source/text"
cp README.md "$source/text"
cp CHANGELOG.md "$source/text/RELEASES.md"  # debhelper would take the other name for a Debian changelog
printf 'text/README.md\ntext/RELEASES.md\n' > "$source/debian/fanlight.docs"
# Isolated: neither PYTHONPATH nor a user's own packages reach the broker.
for command in fanlightd:fanlight_broker.__main__ fanlight:fanlight.cli; do
  cat > "$source/commands/${command%%:*}" <<END
#!/usr/bin/python3 -I
import sys
sys.path.insert(0, "/usr/lib/fanlight")
from ${command#*:} import main
sys.exit(main())
END
done
PYTHONPATH=. "$python" scripts/make_man.py "$source/man"
printf 'man/fanlight.1\nman/fanlightd.8\n' > "$source/debian/fanlight.manpages"
for shell in bash zsh fish; do "$python" -m fanlight.cli completion "$shell" > "$source/commands/$shell"; done
date=$(date -R -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}")
cat > "$source/debian/changelog" <<END
fanlight ($version) stable; urgency=medium

  * See /usr/share/doc/fanlight/RELEASES.md.gz

 -- The Fanlight developers <fanlight@localhost>  $date
END
(cd "$source" && dpkg-buildpackage --build=binary --unsigned-changes --unsigned-buildinfo -d)
cp "$work"/fanlight_*.deb "$out"
ls "$out"/fanlight_*.deb
