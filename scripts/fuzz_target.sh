#!/usr/bin/env bash
# Runs one fuzz target from its corpus, and keeps there what reaches new code. On a finding it names
# the input and exits with an error. One seed gives one order of inputs; 0 draws a seed.
# Usage: scripts/fuzz_target.sh BUILD_FOLDER TARGET SECONDS SEED
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"
[ $# = 4 ] || refuse_argument "$*"
build=$1 target=$2 seconds=$3 seed=$4

corpus=$build/corpus/$target findings=$build/findings/$target
mkdir -p "$corpus" "$findings"
# Inputs that are read as files go to memory, where there is such a folder.
[ ! -d /dev/shm ] || export TMPDIR=/dev/shm
if "$build/fuzz_$target" -seed="$seed" -max_total_time="$seconds" -max_len=8192 -rss_limit_mb=512 \
  -malloc_limit_mb=256 -timeout=20 -print_final_stats=1 -artifact_prefix="$findings/" \
  "$corpus" >"$findings.log" 2>&1; then
  grep -E 'number_of_executed_units|peak_rss_mb' "$findings.log"
else
  tail -n 60 "$findings.log"
  printf '\n%s: the input is in %s; run it again: %s INPUT\n' "$target" "$findings" \
    "$build/fuzz_$target" >&2
  exit 1
fi
