#!/usr/bin/env bash
# Installs what Farstep needs and is not there yet: packages of the system, and into .deps/ of this
# clone LibTorch and the demo corpus, checked by hash. Run again, it does nothing. Where there is an
# NVIDIA GPU, LibTorch comes with the CUDA libraries that it needs there; FARSTEP_GPU=on brings them
# elsewhere too, and FARSTEP_GPU=off leaves them out.
# Usage: scripts/setup.sh [--tests]   (--tests adds the packages that only the tests use)
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"
[ $# = 0 ] || [ "$*" = --tests ] || refuse_argument "${*: -1}"
cd "$(dirname "$0")/.."
. scripts/set_up_parts.sh

packages=(g++ cmake ninja-build ccache git pkg-config python3 python3-pip unzip ca-certificates
  libgloo-dev libzmq3-dev cppzmq-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libcli11-dev libmicrohttpd-dev
  libsentencepiece-dev libpcre2-dev libutf8proc-dev libssl-dev libxxhash-dev libzstd-dev zlib1g-dev zstd)
[ "${1:-}" = --tests ] && packages+=(catch2 iproute2 clang faketime nftables openssh-client systemd-container)

install_system_packages "${packages[@]}"
# Not every release has these; without them the tests of formatting and of learning from images are
# skipped. libclang-rt-dev has libFuzzer, where clang does not bring it itself.
for package in clang-format-14 libclang-rt-dev dataset-fashion-mnist; do
  if [ "${1:-}" = --tests ] && apt-cache show "$package" >/dev/null 2>&1; then
    install_system_packages "$package"
  fi
done
# A test logs in to a machine by ssh. Where systemd runs, the package would start a server for others.
if [ "${1:-}" = --tests ] && [ ! -d /run/systemd/system ]; then
  install_system_packages openssh-server
fi
install_libtorch
if wants_gpu; then advise_on_gpu; fi
install_demo_corpus
say "everything is in place"
