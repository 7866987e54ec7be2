#!/usr/bin/env bash
# Runs one fuzz target from its corpus. On a finding it names the input and exits with an error.
# For SECONDS it draws new inputs, and keeps those in the corpus that reach new code. For 0 seconds
# it runs so many INPUTS, and the same ones each time.
# Usage: scripts/fuzz_target.sh BUILD_FOLDER TARGET SECONDS INPUTS
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"
[ $# = 4 ] || refuse_argument "$*"
build=$1 target=$2 seconds=$3 inputs=$4

corpus=$build/corpus/$target findings=$build/findings/$target
mkdir -p "$corpus" "$findings"
# AddressSanitizer keeps freed memory for a while, which must not count as the target's.
export ASAN_OPTIONS=quarantine_size_mb=32
# Inputs that are read as files go to memory, where there is such a folder.
[ ! -d /dev/shm ] || export TMPDIR=/dev/shm
if [ "$seconds" != 0 ]; then
  run=("$build/fuzz_$target" -max_total_time="$seconds" "$corpus")
else
  # libFuzzer's choice depends on addresses too, so they stay the same where that is allowed. The
  # first folder takes the new inputs.
  new=$(mktemp -d)
  trap 'rm -r "$new"' EXIT
  run=("$build/fuzz_$target" -seed=1 -runs="$inputs" "$new" "$corpus")
  ! setarch -R true 2>/dev/null || run=(setarch -R "${run[@]}")
fi
# zstd asks for its whole window, 2 GiB at most, and touches of it what has text.
malloc_mb=256
case $target in images | text_file) malloc_mb=3072 ;; esac
if "${run[@]}" -max_len=8192 -rss_limit_mb=512 -malloc_limit_mb="$malloc_mb" -timeout=20 \
  -print_final_stats=1 -artifact_prefix="$findings/" >"$findings.log" 2>&1; then
  grep -E 'number_of_executed_units|peak_rss_mb' "$findings.log"
else
  tail -n 60 "$findings.log"
  printf '\n%s: the input is in %s; run it again: %s INPUT\n' "$target" "$findings" \
    "$build/fuzz_$target" >&2
  exit 1
fi
