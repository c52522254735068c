# Bare systems for scripts that source this file: a distribution's smallest installation, in a folder. It is used like
# one that somebody has just installed. Needs root, debootstrap, and a mirror: the one that apt is set to.
#
# $CACHE, outside the checkout, keeps between runs what was fetched: debootstrap's systems, the distribution's packages
# and pip's. It also keeps what ccache compiled, where a script uses it.

CACHE=${PY_BACKENDS_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/py-backends-ci}
LEARNER=learner  # the ordinary user of a bare system
CLONE="내 작업 (it's)"  # the clone's folder in that user's home: tools that misread a path do so here
BACKENDS='python numpy cpp openmp stdpar avx numba_cpu jax opencl sycl cuda numba_cuda cutile'  # what runs without a GPU

die() { printf '%s\n' "$*" >&2; exit 1; }

# Ends at once, with a reason, where something is missing that all the rest needs.
require_bare_systems() {
  [ "$(id -u)" = 0 ] || die 'A bare system needs root, for chroot. WITHOUT_BARE=1 leaves it out.'
  command -v debootstrap >/dev/null || { apt-get update && apt-get install --yes debootstrap; } >/dev/null 2>&1
  command -v debootstrap >/dev/null || die 'A bare system needs debootstrap: apt-get install debootstrap. WITHOUT_BARE=1 leaves it out.'
}

# make_system SUITE FOLDER [ARCHITECTURE]: make one in an empty folder, with an ordinary user and no compiler.
make_system() {
  local suite=$1 root=$2 architecture=${3:-$(dpkg --print-architecture)}
  local archive=$CACHE/$suite-$architecture.tar
  mkdir -p "$CACHE" "$root"
  find "$archive" -mtime +13 -delete 2>/dev/null || true  # sid changes
  [ -e "$archive" ] || bootstrap "$suite" "$archive" "$architecture"
  tar --extract --file "$archive" --directory "$root"
  cp /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
  # This machine's certificates, since a proxy in between may have its own.
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  # Answers yes, keeps packages, and takes a mirror that is no longer updated.
  echo 'APT::Get::Assume-Yes "true"; Binary::apt::APT::Keep-Downloaded-Packages "true"; Acquire::Check-Valid-Until "false";' \
    >"$root/etc/apt/apt.conf.d/answers"
  chroot "$root" useradd --create-home --shell /bin/bash "$LEARNER"
}

bootstrap() {  # bootstrap SUITE ARCHIVE ARCHITECTURE
  local folder mirror
  folder=$(mktemp -d "${TMPDIR:-/var/tmp}/py-backends-bootstrap.XXXXXX")
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m1 '/debian/$' || true)
  chmod 755 "$folder"
  # shellcheck disable=SC2086  # no mirror: debootstrap's own
  debootstrap --variant=minbase --include=ca-certificates,git --arch="$3" "$1" "$folder" $mirror >"$folder.log" 2>&1 \
    || { tail -20 "$folder.log"; die "debootstrap made no $1"; }
  tar --create --file "$2.part" --directory "$folder" .
  mv "$2.part" "$2"
  rm -rf "$folder" "$folder.log"
}

# in_system FOLDER USER COMMAND: run a line in the user's shell, at home. No mount and no process outlives it. From this
# machine's environment it has how to reach the network, and which CPU QEMU emulates, if any.
in_system() {
  local root=$1 user=$2 command=$3 alone=()
  [ "$user" != root ] || alone=(flock "$CACHE/root.lock")  # apt locks the packages that all systems share
  mkdir -p "$CACHE"/{pip,ccache,apt} "$root/home/$LEARNER/.cache"/{pip,ccache}
  # shellcheck disable=SC2016  # for the shells within
  FOLDER=$root PACKAGES=$CACHE RUN=$command AS=$user "${alone[@]}" unshare --mount --pid --fork --kill-child bash -c '
    set -e
    mount -t proc proc "$FOLDER/proc"
    mount --rbind /sys "$FOLDER/sys"
    mount --rbind /dev "$FOLDER/dev"
    mount --bind "$PACKAGES/apt" "$FOLDER/var/cache/apt/archives"
    mkdir -p "$FOLDER/var/cache/apt/archives/partial"
    for each in pip ccache; do mount --bind "$PACKAGES/$each" "$FOLDER/home/'$LEARNER'/.cache/$each"; done
    home=/root
    if [ "$AS" != root ]; then
      home=/home/$AS
      chroot "$FOLDER" chown "$AS:" "$home" "$home/.cache" "$home/.cache/pip" "$home/.cache/ccache"
    fi
    kept=$(env | grep -iE "^((https?|no|all)_proxy|QEMU_CPU)=" || true)
    certificates=/etc/ssl/certs/ca-certificates.crt
    exec env --ignore-environment $kept \
      HOME="$home" USER="$AS" LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin TERM=dumb \
      DEBIAN_FRONTEND=noninteractive SSL_CERT_FILE=$certificates PIP_CERT=$certificates PIP_DISABLE_PIP_VERSION_CHECK=1 \
      chroot --userspec="$AS" "$FOLDER" bash -c "cd && $RUN"
  ' </dev/null
}

# clone_into FOLDER: copy this checkout, as it is committed, to the learner's home. Git is set as on Windows.
clone_into() {
  git clone --quiet --config core.autocrlf=true "$(git rev-parse --show-toplevel)" "$1/home/$LEARNER/$CLONE"
  chroot "$1" chown -R "$LEARNER:" "/home/$LEARNER"
}

# The line for Debian from README's table, as root would type it.
readme_line() { sed -n 's/^.*`sudo \(apt install [^`]*\)`.*$/\1/p' README.md | head -1; }

# right_in FILE BACKEND...: whether each has a correct row in these results.
right_in() {
  python3 -c '
import json, sys
file, *backends = sys.argv[1:]
rows = json.load(open(file, encoding="utf-8"))["rows"]
right = {row["backend"] for row in rows if row["status"] in ("ok", "emulated")}
missing = sorted(set(backends) - right)
sys.exit(f"not right: {missing}" if missing else 0)' "$@"
}

# What scripts do in the system of $suite, in $root, and print. $failed is 1 once something did not hold.

failed=0

step() {  # step WHAT COMMAND...: say whether it ended with 0, and how long it took
  local what=$1 begin=$SECONDS verdict=holds
  shift
  "$@" || { verdict='DOES NOT HOLD'; failed=1; }
  printf '== %-8s %-62s %-14s %5d s\n' "$suite" "$what" "$verdict" $((SECONDS - begin))
}

as_root() { in_system "$root" root "$1"; }
as_user() { in_system "$root" "$LEARNER" "cd ${CLONE@Q} && $1"; }

there() { right_in "$root/home/$LEARNER/$CLONE/results.json" "$@"; }  # there BACKEND...
