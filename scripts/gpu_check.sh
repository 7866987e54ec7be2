#!/usr/bin/env bash
# Runs every GPU test and GPU benchmark, in less than 8 minutes, and prints a table last. It stands in
# the folder that bundle.sh makes, beside the programs; in the tree it takes those of build/release.
# Exit codes: 0 all passed, 1 some did not, 2 no LibTorch, 77 no GPU. Usage: gpu_check.sh [BUILD_FOLDER]
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")

if [ -e "$here/gpu_programs.txt" ]; then
  programs=$here/bin list=$here/gpu_programs.txt
else
  programs=${1:-$here/../build/release} list=$programs/gpu_programs.txt
fi
if ! [ -e "$list" ]; then
  echo "gpu_check: there is no $list: build the release preset first"
  exit 2
fi
if ! [ -e /dev/nvidiactl ] && ! nvidia-smi -L >/dev/null 2>&1; then
  echo "gpu_check: this machine has no NVIDIA GPU, or no driver for it; nothing was run"
  exit 77
fi
. "$here/find_libtorch.sh"
export LD_LIBRARY_PATH="$here/lib:$LD_LIBRARY_PATH"

end=$((SECONDS + 470)) failed=0 table=()

# run KIND PROGRAM [ARGUMENT ...]: a line of the table each, and one for each figure that a benchmark
# prints. PROGRAM is one of the list, or a path.
run() {
  local kind=$1 name=${2##*/} program=$2 began=$SECONDS left=$((end - SECONDS)) output status verdict
  local arguments=("${@:3}")
  [ "$program" != "$name" ] || program=$programs/$name
  [ "$kind" = bench ] || arguments=('[gpu]')
  printf '\n== %s %s\n' "$kind" "$name"
  if [ "$left" -lt 5 ]; then
    verdict='FAILED: no time left' output=''
  else
    output=$(timeout "$left" "$program" "${arguments[@]}" 2>&1)
    status=$?
    printf '%s\n' "$output"
    case "$status" in
      0) verdict=passed ;;
      124) verdict='FAILED: no time left' ;;
      *) verdict="FAILED: exit code $status" ;;
    esac
    grep -q 'SKIPPED:' <<<"$output" && verdict='FAILED: skipped'  # for want of what should be here
  fi
  [ "$verdict" = passed ] || failed=$((failed + 1))
  table+=("$(printf '%-6s %-24s %4d s  %s' "$kind" "$name" $((SECONDS - began)) "$verdict")")
  while read -r line; do table+=("         $line"); done < <(sed -n 's/^result: //p' <<<"$output")
}

while read -r kind name; do run "$kind" "$name"; done <"$list"

# Against transformers' model, where Python has it.
peers=$here/peer_step.py
[ -e "$peers" ] || peers=$here/../tests/bench/peer_step.py
if ! python3 -c 'import transformers' 2>/dev/null; then
  table+=('bench  peer_step.py             not run: python3 has no transformers')
elif [ $((end - SECONDS)) -lt 160 ]; then
  table+=('bench  peer_step.py             not run: no time left')
else
  run bench "$peers" "$programs/step_gpu" --gpu --turns 6
fi

printf '\n%s\n' "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null)"
printf '%s\n' "${table[@]}"
printf '%d programs, %d failed, %d s\n' "$(wc -l <"$list")" "$failed" "$SECONDS"
[ "$failed" = 0 ]
