#!/usr/bin/env bash
# Installs what Farstep needs and is not there yet: packages of the system, and into .deps/ of this
# clone LibTorch and the demo corpus, checked by hash. Run again, it does nothing. Where there is an
# NVIDIA GPU, LibTorch comes with the CUDA libraries that it needs there; FARSTEP_GPU=on brings them
# elsewhere too, and FARSTEP_GPU=off leaves them out.
# Usage: scripts/setup.sh [--parquet] [--tests]
#   --parquet adds Arrow's library, with which `farstep tokenize` reads Parquet files
#   --tests adds all that the tests use: packages, and Arrow's library
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"
parquet='' tests=''
for argument in "$@"; do
  case "$argument" in
    --parquet) parquet=yes ;;
    --tests) parquet=yes tests=yes ;;
    *) refuse_argument "$argument" ;;
  esac
done
cd "$(dirname "$0")/.."
. scripts/set_up_parts.sh

packages=(g++ cmake ninja-build ccache git pkg-config python3 python3-pip unzip ca-certificates
  libgloo-dev libzmq3-dev cppzmq-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libcli11-dev libmicrohttpd-dev
  libsentencepiece-dev libpcre2-dev libutf8proc-dev libssl-dev libxxhash-dev libzstd-dev zlib1g-dev zstd)
[ -n "$tests" ] && packages+=(catch2 iproute2 clang faketime)

install_system_packages "${packages[@]}"
# Not every release has these; without them the tests of formatting and of learning from images are
# skipped. libclang-rt-dev has libFuzzer, where clang does not bring it itself.
for package in clang-format-14 libclang-rt-dev dataset-fashion-mnist; do
  if [ -n "$tests" ] && apt-cache show "$package" >/dev/null 2>&1; then
    install_system_packages "$package"
  fi
done
install_libtorch
if wants_gpu; then advise_on_gpu; fi
if [ -n "$parquet" ]; then install_arrow; fi
install_demo_corpus
say "everything is in place"
