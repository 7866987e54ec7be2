#!/usr/bin/env bash
# Runs every GPU test, every GPU benchmark, the step against transformers' model where python3 has
# it, and the tests again under compute-sanitizer where that is installed. It stands in the folder
# that bundle.sh makes, beside the programs; in the tree it takes those of build/release.
# A call ends within ten minutes; --part, which may be given several times, runs less. What a program
# prints is kept in the folder of results as it comes. A table in Markdown, for docs/results/gpu.md, closes
# the output: it has all that this build ran on this GPU, in earlier calls too.
# Exit codes: 0 all passed, 1 some did not, 2 bad arguments or no LibTorch, 77 no GPU.
# Usage: gpu_check.sh [--part tests|benchmarks|peer|sanitizer] [--results FOLDER]
#                     [--program-seconds N] [BUILD_FOLDER]
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/script_help.sh"
answer_help "$@"

parts=() results='' build='' program_seconds=90
while [ $# -gt 0 ]; do
  case "$1" in
    --part)
      case "${2:-}" in
        tests | benchmarks | peer | sanitizer) parts+=("$2") && shift 2 ;;
        *) refuse_argument --part ;;
      esac
      ;;
    --results) results=${2:?a folder} && shift 2 ;;
    --program-seconds) program_seconds=${2:?a number} && shift 2 ;;
    -*) refuse_argument "$1" ;;
    *) build=$1 && shift ;;
  esac
done
[ ${#parts[@]} -gt 0 ] || parts=(tests benchmarks peer sanitizer)
readonly peer_seconds=200 sanitizer_seconds=240
readonly end=$((SECONDS + 560))  # a hung program takes up to 5 s more to end

if [ -e "$here/gpu_programs.txt" ]; then
  programs=$here/bin list=$here/gpu_programs.txt results=${results:-$here/results}
else
  programs=${build:-$here/../build/release}
  list=$programs/gpu_programs.txt results=${results:-$programs/gpu_check}
fi
if ! [ -e "$list" ]; then
  echo "gpu_check: there is no $list: build the release preset first" >&2
  exit 2
fi
if ! [ -e /dev/nvidiactl ] && ! timeout 20 nvidia-smi -L >/dev/null 2>&1; then
  echo "gpu_check: this machine has no NVIDIA GPU, or no driver for it; nothing was run"
  exit 77
fi

# The build's own LibTorch, where set-up brought its CUDA part; else that of python3. The libraries
# are for the programs alone: python3 finds its own.
without_libraries=(env -u LD_LIBRARY_PATH)
[ -z "${LD_LIBRARY_PATH+set}" ] || without_libraries=(env "LD_LIBRARY_PATH=$LD_LIBRARY_PATH")
libtorch=$(sed -n 's/^FARSTEP_LIBTORCH:PATH=//p' "$programs/CMakeCache.txt" 2>/dev/null)
if [ -z "${FARSTEP_TORCH:-}" ] && [ -e "$libtorch/torch/lib/libtorch_cuda.so" ]; then
  FARSTEP_TORCH=$libtorch/torch
fi
. "$here/find_libtorch.sh"

# smi FIELD: what nvidia-smi says of the first GPU, or "unknown".
smi() {
  local told
  told=$(timeout 20 nvidia-smi "--query-gpu=$1" --format=csv,noheader 2>/dev/null | head -n 1)
  echo "${told:-unknown}"
}

mapfile -t tests < <(sed -n 's/^test //p' "$list")
mapfile -t benchmarks < <(sed -n 's/^bench //p' "$list")
gpu=$(smi name) capability=$(smi compute_cap)
num_gpus=$(timeout 20 nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
commit=$(cat "$here/commit.txt" 2>/dev/null || git -C "$here" describe --always --dirty 2>/dev/null)
# Results of another GPU, driver or build do not belong into one table.
of="$gpu, driver $(smi driver_version), LibTorch $farstep_torch_version, commit ${commit:-unknown}"
mark="$of $(cd "$programs" && cat "${tests[@]}" "${benchmarks[@]}" 2>/dev/null | sha256sum)"
mkdir -p "$results"
if [ "$(cat "$results/of" 2>/dev/null)" != "$mark" ]; then
  rm -f "$results"/*.txt "$results"/*.row
  printf '%s\n' "$mark" >"$results/of"
fi

# verdict_of KIND STATUS SECONDS LOG. Tests of FP8 may be skipped where the GPU has none, those of
# several GPUs where there is one, and none for another reason. What several GPUs would have shown is
# not called passed.
verdict_of() {
  local skipped other few='SKIPPED: fewer than two NVIDIA GPUs' fp8='fp8 needs a GPU of compute capability 8[.]9 .*this one has [0-8][.][0-8];'
  case "$2" in
    0 | 77) ;;  # 77: some tests were skipped, and none failed
    124 | 137) echo "FAILED: not done after $3 s" && return ;;
    *) echo "FAILED: exit code $2" && return ;;
  esac
  skipped=$(grep -o 'SKIPPED: .*' "$4" | sort -u)
  other=$(grep -v "$fp8" <<<"$skipped" | head -n 1)
  [ "$num_gpus" -ge 2 ] || other=$(grep -v -e "$fp8" -e "^$few\$" <<<"$skipped" | head -n 1)
  if [ -n "$other" ]; then
    echo "FAILED: $other"
  elif grep -q "$fp8" <<<"$skipped" && [[ $capability =~ ^(8[.]9|9[.]|1[0-9][.]) ]]; then
    echo "FAILED: FP8 was skipped on a GPU that has it"
  elif [ "$1" != bench ] && ! grep -q 'All tests passed' "$4"; then
    echo "FAILED: nothing was tested"
  elif [ "$1" = bench ] && ! grep -q '^result: ' "$4"; then
    echo "FAILED: no figures"
  elif grep -qx "$few" <<<"$skipped"; then
    echo "NOT TESTED: needs two GPUs, and this machine has one; what one GPU can show passed"
  else
    echo "passed${skipped:+, without FP8, which this GPU does not have}"
  fi
}

# keep KIND NAME SECONDS VERDICT: the rows of the table, with the figures that the program printed.
keep() {
  {
    printf '| %s %s | %s | %s |\n' "$1" "$2" "$3" "${4//|/\\|}"
    sed -n '/^result: /{s/^result: //;s/|/\\|/g;s/.*/| | | & |/p}' "$results/$1-$2.txt"
  } >"$results/$1-$2.row"
}

failed=0
# run KIND NAME SECONDS COMMAND [ARGUMENT ...], for so many seconds at most.
run() {
  local kind=$1 name=$2 limit=$3 log=$results/$1-$2.txt began=$SECONDS left=$((end - SECONDS))
  local verdict
  shift 3
  printf '\n== %s %s\n' "$kind" "$name"
  [ "$left" -ge "$limit" ] || limit=$left
  if [ "$left" -lt 5 ]; then
    verdict='FAILED: no time left in this call'
    printf '%s\n' "$verdict"
    # What an earlier call found stands.
    [ -e "$results/$kind-$name.row" ] || { : >"$log" && keep "$kind" "$name" 0 "$verdict"; }
  else
    keep_running "$kind" "$name"
    timeout -k 5 "$limit" "$@" >"$log" 2>&1 &
    tail -n +1 -s 0.2 -f --pid=$! "$log"  # ends with the program, whoever still holds its output
    wait $!
    verdict=$(verdict_of "$kind" $? "$limit" "$log")
    printf '== %s\n' "$verdict"
    keep "$kind" "$name" $((SECONDS - began)) "$verdict"
  fi
  [[ $verdict != FAILED* ]] || failed=$((failed + 1))
}

# If this script is ended while a program runs, the table says so.
keep_running() {
  : >"$results/$1-$2.txt"
  keep "$1" "$2" '?' 'FAILED: did not end'
}

# Each line of a program as it comes, although it prints to a file; of tests also which have ended.
run_test() {
  run test "$1" "$program_seconds" stdbuf -oL "$programs/$1" '[gpu]' --durations yes
}

run_peer() {
  local peers=$here
  [ -e "$peers/peer_step.py" ] || peers=$here/../tests/bench
  if ! "${without_libraries[@]}" python3 -c 'import transformers' 2>/dev/null; then
    printf '\n== peer_step.py is not run: python3 has no transformers\n'
  elif [ $((end - SECONDS)) -lt 100 ]; then
    printf '\n== peer_step.py is not run: too little time is left; --part peer runs it\n'
  else
    run bench peer_step.py "$peer_seconds" "${without_libraries[@]}" PYTHONUNBUFFERED=1 python3 \
      "$peers/peer_step.py" "$programs/step_gpu" --gpu --turns 6 --program-libraries "$LD_LIBRARY_PATH"
  fi
}

run_sanitizer() {
  local sanitizer tool name
  sanitizer=$(command -v compute-sanitizer /usr/local/cuda/bin/compute-sanitizer \
    "$farstep_torch/../nvidia/cu13/bin/compute-sanitizer" | head -n 1)
  if [ -z "$sanitizer" ]; then
    printf '\n== compute-sanitizer is not installed\n'
    return
  fi
  for tool in memcheck racecheck; do
    for name in "${tests[@]}"; do
      # Shared memory, where races are, is in kernels of our own.
      [[ $tool = memcheck || $name = gpu_kernels_test ]] || continue
      if [ $((end - SECONDS)) -lt 30 ]; then
        printf '\n== %s %s is not run: too little time is left\n' "$tool" "$name"
        continue
      fi
      # Calls that fail are not reported: libraries make some to see what there is.
      run "$tool" "$name" "$sanitizer_seconds" "$sanitizer" --tool "$tool" --error-exitcode 99 \
        --report-api-errors no "$programs/$name" '[gpu]'
    done
  done
}

print_table() {
  local kind name
  printf '\n### %s\n\n%s, %s.\n\n' "$gpu" "${of#"$gpu, "}" "$(date +%F)"
  printf '| program | seconds | verdict, figures |\n|---|---|---|\n'
  for kind in test bench memcheck racecheck; do
    for name in "${tests[@]}" "${benchmarks[@]}" peer_step.py; do
      cat "$results/$kind-$name.row" 2>/dev/null
    done
  done
}

trap 'print_table | tee "$results/table.md"' EXIT
for part in "${parts[@]}"; do
  case "$part" in
    tests) for name in "${tests[@]}"; do run_test "$name"; done ;;
    benchmarks)
      for name in "${benchmarks[@]}"; do
        run bench "$name" "$program_seconds" stdbuf -oL "$programs/$name"
      done
      ;;
    peer) run_peer ;;
    sanitizer) run_sanitizer ;;
  esac
done
printf '\n%d failed, %d s; outputs are in %s\n' "$failed" "$SECONDS" "$results"
[ "$failed" = 0 ]
