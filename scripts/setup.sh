#!/usr/bin/env bash
# Installs what Farstep needs and is not there yet: packages of the system, and into .deps/ of this
# clone LibTorch and the demo corpus, checked by hash. Run again, it does nothing.
# Usage: scripts/setup.sh [--tests]   (--tests adds the packages that only the tests use)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/set_up_parts.sh

packages=(g++ cmake ninja-build ccache git pkg-config python3 python3-pip unzip ca-certificates
  libgloo-dev libzmq3-dev cppzmq-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libcli11-dev
  libsentencepiece-dev libxxhash-dev libzstd-dev zlib1g-dev zstd)
[ "${1:-}" = --tests ] && packages+=(catch2 iproute2)

install_system_packages "${packages[@]}"
# Not every release has this version; without it the test of the formatting is skipped.
if [ "${1:-}" = --tests ] && apt-cache show clang-format-14 >/dev/null 2>&1; then
  install_system_packages clang-format-14
fi
install_libtorch
install_demo_corpus
say "everything is in place"
