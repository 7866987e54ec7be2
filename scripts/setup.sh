#!/usr/bin/env bash
# Installs what Farstep needs and is not there yet: packages of the system, and into .deps/ of this
# clone LibTorch and the demo corpus, checked by hash. Run again, it does nothing. Where there is an
# NVIDIA GPU, LibTorch comes with the CUDA libraries that it needs there; FARSTEP_GPU=on brings them
# elsewhere too, and FARSTEP_GPU=off leaves them out.
# Usage: scripts/setup.sh [--parquet] [--tests | --oracles]
# --parquet adds Arrow's library, with which `farstep tokenize` reads Parquet files. --tests adds all that
# the tests use: packages of the system, Arrow's library, and Python packages that they compare with, in
# .deps/python. --oracles is --tests, and brings PyTorch and its CUDA libraries there too, 2 GB to fetch,
# unless FARSTEP_ORACLES=off.
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"
parquet='' tests='' oracles=''
for argument in "$@"; do
  case "$argument" in
    --parquet) parquet=yes ;;
    --tests) parquet=yes tests=yes ;;
    --oracles) parquet=yes tests=yes oracles=yes ;;
    *) refuse_argument "$argument" ;;
  esac
done
cd "$(dirname "$0")/.."
. scripts/set_up_parts.sh
. scripts/set_up_python.sh

packages=(g++ cmake ninja-build ccache git pkg-config python3 python3-pip unzip ca-certificates
  libgloo-dev libzmq3-dev cppzmq-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libcli11-dev libmicrohttpd-dev
  libsentencepiece-dev libpcre2-dev libutf8proc-dev libssl-dev libxxhash-dev libzstd-dev zlib1g-dev zstd dpkg-dev file)
[ -n "$tests" ] && packages+=(catch2 iproute2 clang faketime nftables openssh-client
  systemd-container groff man-db zsh fish)

install_system_packages "${packages[@]}"
# Not every release has these; without them the tests of formatting, of learning from images, and of
# the live page in a browser are skipped. libclang-rt-dev has libFuzzer, where clang does not bring it
# itself.
for package in clang-format-14 libclang-rt-dev dataset-fashion-mnist chromium-headless-shell; do
  if [ -n "$tests" ] && apt-cache show "$package" >/dev/null 2>&1; then
    install_system_packages "$package"
  fi
done
[ -z "$tests" ] || unpack_prometheus
# A test logs in to a machine by ssh, and one has a Slurm of its own. Where systemd runs, the packages
# would start servers for others.
if [ -n "$tests" ] && [ ! -d /run/systemd/system ]; then
  install_system_packages openssh-server slurmctld slurmd slurm-client munge
fi
install_libtorch
if wants_gpu; then advise_on_gpu; fi
if [ -n "$parquet" ]; then install_arrow; fi
install_demo_corpus
[ -z "$tests" ] || install_python_oracles
[ -z "$tests" ] || install_wheel_tools
[ -z "$oracles" ] || [ "${FARSTEP_ORACLES:-on}" = off ] || install_python_torch
say "everything is in place"
