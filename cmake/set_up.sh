#!/bin/sh
# What every command of the Makefile needs: the environment .venv, and the extension, built.
#
#   cmake/set_up.sh EXTRAS...    Each is a list as pip takes it, for instance cmake/set_up.sh cpu,peers,conformance test.
#   cmake/set_up.sh --python     Sets up nothing. Prints the Python to take, or fails where something is missing.
#
# Before it fetches anything, it says what the system lacks and how to install that. Without a C++ compiler or Python's
# headers it continues, and backends that need the extension say why they are missing. If it is interrupted, even by
# SIGKILL, the next run continues the work. Each finished part is marked. What a killed run leaves running holds the
# lock until it ends.
set -eu
unset CDPATH                     # it would lead `cd` to another folder that has a folder cmake
cd -P "$(dirname "$0")/.."       # marks name this folder, however one came here

venv=.venv
preset=${PRESET:-release}  # of CMakePresets.json
build=build/$preset
incomplete=build/incomplete     # exists while packages are being installed: half an environment cannot be repaired
installed=$venv/extras           # a folder with a file for each list that is installed
os_release=${OS_RELEASE:-/etc/os-release}

main() {
  check_path
  leave_environment
  set_pip
  find_python
  find_compiler
  if [ "$1" = --python ]; then
    [ -z "$missing" ] || stop "Missing: $missing. Install what is missing: $remedy"
    echo "$python"
    return
  fi
  [ -n "$python" ] || stop "Missing: $missing. Install what is missing: $remedy"
  mkdir -p build
  exec 9>build/lock
  flock --nonblock 9 || { echo 'Waiting for another make in this folder'; flock 9; }
  [ -z "$missing" ] || echo "Missing: $missing. Backends that need them are left out until you install them: $remedy"
  install "$@"
  PATH=$(pwd)/$venv/bin:$PATH
  if [ -z "$missing" ]; then compile; else leave_out; fi
}

# A colon ends a folder in PATH. The others end a name, or begin another, in files that CMake writes for itself.
check_path() {
  case $(pwd) in *[:\;\|\"\\]* | *'${'*) stop "Move this clone: its path has one of : ; | \" \\ \${ in it, $(pwd)" ;; esac
}

# Takes the folder of .venv's own commands out of PATH.
leave_environment() {
  rest=$PATH: PATH=''
  while [ -n "$rest" ]; do
    folder=${rest%%:*} rest=${rest#*:}
    [ "$folder" -ef $venv/bin ] || PATH=${PATH:+$PATH:}$folder
  done
}

# What would send packages elsewhere, or install none, in a user's variables or pip.conf. Indexes, proxies and
# certificates stay as they are.
set_pip() {
  unset PIP_TARGET PIP_PREFIX PIP_ROOT PIP_PYTHON
  export PIP_USER=0 PIP_DRY_RUN=0 PIP_NO_DEPS=0 PIP_REQUIRE_HASHES=0
}

stop() { printf '%s\n' "$*" >&2; exit 1; }

lack() {  # lack WHAT PACKAGE
  missing=${missing:+$missing and }$1
  case " $packages " in *" $2 "*) ;; *) packages="${packages:+$packages }$2" ;; esac
  remedy=$(printf "$manager" "$packages")
}

# Sets `python` to the first that is new enough and can make environments, and begins `missing`.
find_python() {
  name_packages
  missing='' packages='' remedy='' python=''
  for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if "$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      python=$candidate
      break
    fi
  done
  if [ -z "$python" ]; then
    lack "Python 3.11 or newer with venv${PYTHON:+, which $PYTHON is not}" "$python_package"
  fi
  headers='import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'
  if [ -z "$python" ] || ! "$python" -c "$headers"; then
    lack "Python's headers" "$headers_package"
  fi
}

# Looks for a compiler that works, as CMake will.
find_compiler() {
  if [ -n "${CXX:-}" ]; then
    compiles "$CXX" || lack "a C++17 compiler (g++ 11 or newer, or clang 14 or newer), which CXX=$CXX is not" "$compiler_package"
  elif ! compiles c++ && ! compiles g++ && ! compiles clang++; then
    lack 'a C++17 compiler (g++ 11 or newer, or clang 14 or newer)' "$compiler_package"
  fi
}

# shellcheck disable=SC2086  # CXX may hold options
compiles() { $1 -std=c++17 -fsyntax-only cmake/compiler_check.cpp 2>/dev/null; }

# The distribution's names of packages, and its command that installs them.
name_packages() {
  family=$(ID='' ID_LIKE=''; [ ! -r "$os_release" ] || . "$os_release"; echo " $ID $ID_LIKE ")
  prefix=sudo\ 
  [ "$(id -u)" != 0 ] || prefix=''
  python_package=python3 headers_package=python3-devel compiler_package=gcc-c++
  case $family in
    *' debian '* | *' ubuntu '*)
      manager="${prefix}apt install %s" python_package=python3-venv headers_package=python3-dev compiler_package=g++ ;;
    *' fedora '* | *' rhel '*) manager="${prefix}dnf install %s" ;;
    *' arch '*) manager="${prefix}pacman -S --needed %s" python_package=python headers_package=python compiler_package=gcc ;;
    *) manager='install what your distribution calls %s' ;;
  esac
}

# install EXTRAS...: add to the environment what it lacks of them, and all again when pyproject.toml has changed.
install() {
  lacking=''
  for extras; do
    [ "$(cat "$installed/$extras" 2>/dev/null)" = "$(as_of pyproject.toml)" ] || lacking=${lacking:+$lacking,}$extras
  done
  [ -n "$lacking" ] || return 0
  echo "Installing into $venv: a few minutes the first time"
  if [ -e $incomplete ] || ! $venv/bin/python -m pip --version >/dev/null 2>&1; then
    touch $incomplete
    "$python" -m venv --clear $venv
  fi
  touch $incomplete
  $venv/bin/python -m pip install --quiet 'scikit-build-core>=1.0' cmake ninja pybind11 \
    "tbb-devel>=2022.0; platform_machine == 'x86_64'"
  # The installation does not compile. The build does, and can do so again whenever a kernel changes.
  $venv/bin/python -m pip install --quiet --no-build-isolation --editable ".[$lacking]" \
    --config-settings=cmake.define.PY_BACKENDS_COMPILE=OFF
  $venv/bin/python cmake/link_equal.py $venv
  mkdir -p $installed
  for extras; do as_of pyproject.toml >"$installed/$extras"; done
  rm $incomplete
}

# What a mark says: for which folder, which Python, which an upgrade of the system replaces, and which file it holds.
as_of() { echo "$(pwd) $($venv/bin/python --version 2>&1) $(cksum <"$1")"; }

# Builds what is older than its sources, which CMake finds out in a fraction of a second.
compile() {
  enter_plainly
  configuration="${CXX:-} ${CXXFLAGS:-} $(as_of CMakePresets.json)"
  if [ "$(cat $build/configured 2>/dev/null)" != "$configuration" ]; then
    mkdir -p $build
    rm -f $build/configured
    run_cmake --preset "$preset" --fresh "-DPython_EXECUTABLE=$(pwd)/$venv/bin/python"
    grep -- '-- Without' $build/log || true
    echo "$configuration" >$build/configured
    echo 'Building the extension'
  fi
  run_cmake --build --preset "$preset"
}

# In paths CMake takes some characters for a pattern, also in that of its own modules. So it gets links without them, to
# this clone and to its modules, and lies beside them.
enter_plainly() {
  cmake=''
  case $(pwd) in *[][*?\<\>]*)
    links=${XDG_CACHE_HOME:-$HOME/.cache}/py-backends/clone-$(pwd | cksum | tr ' ' -)
    modules=$($venv/bin/python -c 'import cmake; print(cmake.CMAKE_DATA)')
    mkdir -p "$links/bin"
    ln -sfn "$(pwd)" "$links/clone"
    ln -sfn "$modules/share" "$links/share"
    cmp -s "$modules/bin/cmake" "$links/bin/cmake" || cp "$modules/bin/cmake" "$links/bin/cmake"
    cd "$links/clone"
    export PWD  # which tells CMake
    cmake=$links/bin/cmake
  esac
}

run_cmake() {
  if [ -n "$cmake" ]; then logged "$cmake" "$@"; else logged $venv/bin/python -m cmake "$@"; fi
}

logged() { "$@" >$build/log 2>&1 || { cat $build/log; exit 1; }; }

# Unless there was an earlier build, records why there is none, for backends to repeat.
leave_out() {
  # shellcheck disable=SC2016  # Python's
  REASON="it was not built, since the system lacks $missing" FIX="$remedy, then run make again" $venv/bin/python -c '
import json, os, sysconfig
from pathlib import Path
place, abi = Path("py_backends/_compiled"), sysconfig.get_config_var("SOABI")
if not any(place.glob(f"*.{abi}.so")):
    why = {"reason": os.environ["REASON"], "fix": os.environ["FIX"]}
    (place / f"build.{abi}.json").write_text(json.dumps({"not_built": why}), encoding="utf-8")'
}

main "$@"
