#!/bin/sh
# Find a Python that can build and run Fanlight, and make a virtual environment with it.
#
#   make-venv.sh VENV [PYTHON]           make VENV if it is not there; PYTHON instead of the first suitable one
#   make-venv.sh --check VENV [PYTHON]   only say whether VENV works, and is of PYTHON's version if one is named
#
# Suitable: 3.11 or later, with the venv module, C headers and a C compiler. Whatever is missing is named at once,
# with the package that has it, rather than by a compiler's error a minute later.
set -eu

check=
[ "${1:-}" = --check ] && { check=1; shift; }
venv=$1
wanted=${2:-}

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

if [ -e "$venv/pyvenv.cfg" ]; then
  have=$(version_of "$venv/bin/python") || {
    echo "$venv is broken: its Python no longer runs. Remove it (rm -rf $venv) and run this again." >&2; exit 1; }
  if [ -n "$wanted" ]; then
    want=$(version_of "$wanted") || { echo "PYTHON=$wanted does not run." >&2; exit 1; }
    [ "$want" = "$have" ] || {
      echo "$venv has Python $have, and PYTHON=$wanted is $want: name another environment, as in VENV=.venv-$want" >&2
      exit 1; }
  fi
  exit 0
fi
[ -z "$check" ] || { echo "$venv is missing" >&2; exit 1; }

# Prints what the interpreter $1 lacks, one word each; nothing if it will do.
lacking() {
  "$1" - <<'PY' 2>/dev/null || echo interpreter
import sys
if sys.version_info < (3, 11):
    print("version")
    sys.exit()
import importlib.util, os, shlex, shutil, sysconfig
if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
    print("venv")
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    print("headers")
compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
if not shutil.which(compiler):
    print("compiler:" + compiler)
PY
}

advise() {  # $1 version, $2 what is lacking
  case $2 in
    venv) echo "  venv       Debian, Ubuntu: apt-get install python$1-venv";;
    headers) echo "  C headers  Debian, Ubuntu: apt-get install python$1-dev;  Fedora: dnf install python3-devel";;
    compiler:*) echo "  ${2#compiler:} (C compiler)  Debian, Ubuntu: apt-get install gcc libc6-dev;  Fedora: dnf install gcc;  macOS: xcode-select --install";;
  esac
}

seen=
for candidate in ${wanted:-python3 python3.13 python3.12 python3.11 python3.14}; do
  # A name may exist and not run (a version manager's shim): `lacking` says "interpreter" then.
  command -v "$candidate" >/dev/null 2>&1 || continue
  missing=$(lacking "$candidate")
  case $missing in
    '') version=$(version_of "$candidate")
        echo "make: creating $venv with $candidate (Python $version)"
        exec "$candidate" -m venv "$venv";;
    interpreter) continue;;
    version) seen="$seen
  $candidate is Python $(version_of "$candidate"), too old";;
    *) seen="$seen
  $candidate (Python $(version_of "$candidate")) lacks:"
       for one in $missing; do seen="$seen
  $(advise "$(version_of "$candidate")" "$one")"; done;;
  esac
done

{
  echo "Fanlight needs Python 3.11 or later with its venv module and C headers, and a C compiler."
  if [ -n "$seen" ]; then echo "Found:$seen"
  elif [ -n "$wanted" ]; then echo "PYTHON=$wanted does not run."
  else echo "Found no Python at all. Debian, Ubuntu: apt-get install python3 python3-venv python3-dev gcc make"; fi
  [ -n "$wanted" ] || echo "Another interpreter is chosen by PYTHON=/path/to/python3."
} >&2
exit 1
