#!/usr/bin/env bash
# Tries Farstep on another release of Debian: makes a bare system of it in a folder, puts a clean clone of
# the last commit there, and runs README's two commands in it, scripts/quickstart.sh and scripts/test.sh.
# The system stays. The next run uses it again, with its packages, downloads and compiled objects.
# The logs lie beside it. It needs root, debootstrap and 20 GB of disk. The system has its own mounts and
# processes, which end with this script, whatever ends it. FARSTEP_ORACLES is as for scripts/setup.sh, and
# FARSTEP_MIRROR names another mirror than http://deb.debian.org/debian.
# Usage: scripts/other_debian.sh [--quickstart | --clang] [--folder FOLDER] [SUITE]
#   SUITE: the release, default trixie (Debian 13)
#   --folder: for the system and the logs, default build/SUITE
#   --quickstart: ends before the tests
#   --clang: instead of both, compiles everything with the release's clang, warnings being errors
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"

parts=(quickstart tests) folder='' suite=''
while [ $# -gt 0 ]; do
  case "$1" in
    --quickstart) parts=(quickstart) && shift ;;
    --clang) parts=(clang) && shift ;;
    --folder) folder=${2:?a folder} && shift 2 ;;
    -*) refuse_argument "$1" ;;
    *) [ -z "$suite" ] || refuse_argument "$1"
       suite=$1 && shift ;;
  esac
done
suite=${suite:-trixie}
mirror=${FARSTEP_MIRROR:-http://deb.debian.org/debian}
folder=$(realpath -m "${folder:-$(dirname "$0")/../build/$suite}")
root=$folder/root       # of the system
tree=$root/root/farstep # the clone in it
cd "$(dirname "$0")/.."

say() { printf 'other_debian: %s\n' "$*"; }

fail() {
  say "$*" >&2
  exit 1
}

# make_system: debootstrap's mounts are in a namespace that ends with it.
make_system() {
  [ ! -e "$folder/complete" ] || return 0
  command -v debootstrap >/dev/null || fail "install debootstrap first"
  say "making a bare $suite in $root"
  rm -rf "$root"
  unshare --mount debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$folder/debootstrap.log" 2>&1 || {
    tail -n 20 "$folder/debootstrap.log"
    fail "debootstrap failed"
  }
  touch "$folder/complete"
}

# connect_system: it reaches the network as this machine does, with its names, proxies and certificates.
connect_system() {
  cp --remove-destination -L /etc/resolv.conf /etc/hosts "$root/etc/"
  apt-config dump --format '%F "%v";%n' Acquire::http Acquire::https >"$root/etc/apt/apt.conf.d/90network"
  mkdir -p "$root/usr/local/share/ca-certificates"
  find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$root/usr/local/share/ca-certificates" {} +
}

# renew_clone: of a former one only the downloads stay.
renew_clone() {
  rm -rf "$tree.new"
  git clone --quiet --no-hardlinks "$PWD" "$tree.new"
  [ ! -d "$tree/.deps" ] || mv "$tree/.deps" "$tree.new/"
  rm -rf "$tree"
  mv "$tree.new" "$tree"
}

# inside COMMAND: runs it in the clone. Not by chroot, which nsenter, that tests use, would leave.
inside() {
  local kept=() name
  for name in {http,https,ftp,no}_proxy {HTTP,HTTPS,FTP,NO}_PROXY FARSTEP_ORACLES TERM; do
    [ -z "${!name:-}" ] || kept+=("$name=${!name}")
  done
  # shellcheck disable=SC2016
  exec unshare --mount --pid --fork --kill-child sh -euc '
    mount --bind "$1" "$1"
    cd "$1"
    shift
    mount -t proc proc proc
    mount --rbind /dev dev
    mount --rbind /sys sys
    pivot_root . mnt
    umount --lazy /mnt
    cd /root/farstep
    exec "$@"' sh "$root" \
    env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    FARSTEP_GPU=off "${kept[@]}" bash -euc "$1"
}

# run_part NAME COMMAND: in the background, so that a signal to this script ends it.
running=''
run_part() {
  local start=$SECONDS status=0 log=$folder/$1.log
  say "$suite, commit $(git rev-parse --short HEAD): $2"
  inside "$2" >"$log" 2>&1 </dev/null &
  running=$!
  wait "$running" || status=$?
  running=''
  tail -n 20 "$log"
  say "$1 ended with exit code $status after $((SECONDS - start)) s; its log is $log"
  return "$status"
}
trap '[ -z "$running" ] || kill -KILL "$running"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

[ "$(id -u)" = 0 ] || fail "run it as root: it makes a system, and mounts"
mkdir -p "$folder"
make_system
connect_system
renew_clone
for part in "${parts[@]}"; do
  case "$part" in
    quickstart) run_part quickstart scripts/quickstart.sh ;;
    tests) run_part tests scripts/test.sh ;;
    clang) run_part clang 'scripts/setup.sh --tests
      cmake --preset release -B build/clang -DCMAKE_CXX_COMPILER=clang++ -DFARSTEP_WERROR=ON
      cmake --build build/clang -- -k 0' ;;
  esac
done
