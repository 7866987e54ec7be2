#!/usr/bin/env bash
# Builds the fuzz targets with clang and runs each for SECONDS, as many at once as there are cores.
# A target draws new inputs, and begins with those that an earlier run kept in build/asan/corpus.
# Where one finds an input that crashes, hangs or takes too much memory, the script names it and
# exits with an error.
# Usage: scripts/fuzz.sh [SECONDS]   (600 without it)
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"
seconds=${1:-600}
[[ $# -le 1 && $seconds =~ ^[1-9][0-9]*$ ]] || refuse_argument "${*: -1}"
cd "$(dirname "$0")/.."

cmake --preset asan -DFARSTEP_FUZZ_SECONDS="$seconds" >/dev/null
cmake --build --preset asan --target fuzz_targets
ctest --preset asan -L fuzz -j "$(nproc)" --verbose | grep -vE '^[0-9]+: *$|^test [0-9]+$'
