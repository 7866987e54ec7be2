#!/usr/bin/env bash
# Sets up, builds, and runs every test that can run on this machine. Under AddressSanitizer with UBSan:
# the tests of the torch-free layers, and some thousand inputs of each fuzz target, the same ones each
# time. Under ThreadSanitizer: those that start threads. On the release build: all others, and those whose
# results optimisation could change.
# A test that fails is run once more; one that passes then is named as flaky, which is a defect to
# mend, but not of the change that is tested. The last line is "N passed, N failed".
# Usage: scripts/test.sh
set -uo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"
[ $# = 0 ] || refuse_argument "$1"
cd "$(dirname "$0")/.."

presets=(release asan tsan)
results=build/test-results
mkdir -p "$results"
rm -f "$results"/*.log "$results/built"

fail_early() {
  printf '%s\n' "$1"
  printf '0 passed, 1 failed\n'
  exit 1
}

# start COMMAND...: begins it as a process group of its own, whose number is $!.
groups=()
start() {
  set -m
  "$@" &
  set +m
  groups+=("$!")
}

# end_all: what this script has started ends with it, whatever ends it.
end_all() {
  local group
  for group in "${groups[@]}"; do kill -- "-$group" 2>/dev/null; done
  wait 2>/dev/null  # bash tells of an ended group after the last line else
  rm -f "$results/built"
}
trap end_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# build_preset PRESET: fails if it does not build; the text is in PRESET-build.txt.
build_preset() {
  local all_tests=ON
  # What asan builds and runs is not built here too, which would take eight minutes of processor time.
  [ "$1" != release ] || all_tests=OFF
  { cmake --preset "$1" -DFARSTEP_TESTS=ON -DFARSTEP_ALL_TESTS=$all_tests -DFARSTEP_WERROR=ON &&
    cmake --build --preset "$1"; } >"$results/$1-build.txt" 2>&1
}

# build_all: writes to the pipe `built` the name of each preset as soon as it is built, or "PRESET failed"
# and ends. Most tests wait for each other and for timers. From the second preset on a build takes only
# the processor time that they leave.
build_all() {
  local preset
  for preset in "${presets[@]}"; do
    build_preset "$preset" || { printf '%s failed\n' "$preset"; return; }
    printf '%s\n' "$preset"
    chrt --idle --pid 0 "$BASHPID" 2>/dev/null || renice -n 19 "$BASHPID" >/dev/null
  done
} >"$results/built"

set_up_oracles() {
  scripts/setup.sh --oracles >"$results/oracles.txt" 2>&1
}

# run_tests PRESET: what fails is counted at the end.
run_tests() {
  ctest --preset "$1" --repeat until-pass:2 2>&1 3<&- | tee "$results/$1.log"
}

scripts/setup.sh --tests || fail_early "set-up failed"
# Tests on the release build need PyTorch, the build does not. FARSTEP_ORACLES=off leaves it out.
start set_up_oracles
oracles=$!
mkfifo "$results/built"
start build_all
num_tested=0
while read -r preset state <&3; do
  [ -z "$state" ] || { tail -n 60 "$results/$preset-build.txt"; fail_early "the $preset build failed"; }
  if [ -n "$oracles" ]; then
    wait "$oracles" || { tail -n 60 "$results/oracles.txt"; fail_early "set-up of the oracles failed"; }
    oracles=''
  fi
  num_tested=$((num_tested + 1))
  printf '\n== %s: tests\n' "$preset"
  start run_tests "$preset"
  wait "$!"  # a signal ends it, unlike a command in the foreground
done 3<"$results/built"
[ "$num_tested" = "${#presets[@]}" ] || fail_early "the builds ended after $num_tested presets"

# CTest closes with "98% tests passed, 2 tests failed out of 150", which counts skipped ones as passed.
total=0 failed=0 skipped=0
for log in "$results"/*.log; do
  read -r run_failed run_total < <(
    sed -n 's/.*tests passed, \([0-9]*\) tests\{0,1\} failed out of \([0-9]*\).*/\1 \2/p' "$log" | tail -n 1)
  [ -n "${run_total:-}" ] || fail_early "no tests ran: see $log"
  total=$((total + run_total)) failed=$((failed + run_failed))
  skipped=$((skipped + $(grep -c '\*\*\*Skipped' "$log")))
done
# What failed once more, where a reader looks first: the ends of the outputs, then the names.
awk '/\*\*\*(Failed|Timeout|Exception|Not Run)/ { shown = 1 } /^ +Start +[0-9]+:/ { shown = 0 } shown' \
  "$results"/*.log | tail -n 80
sed -n '/^The following tests FAILED:/,/^Errors while/s/^\t */failed: /p' "$results"/*.log
# A second try's line begins with four spaces.
awk '/Test +#[0-9]+: / {
    name = $0
    sub(/^.*Test +#[0-9]+: /, "", name)
    sub(/ \.\.\..*$/, "", name)
    if (/\*\*\*(Failed|Timeout|Exception)/) failed[name] = 1
    else if (/^    Test .* Passed / && name in failed) print "flaky: " name
  }' "$results"/*.log
[ "$skipped" = 0 ] || printf '\n%d tests were skipped: this machine lacks what they need\n' "$skipped"
printf '\n%d passed, %d failed\n' "$((total - failed - skipped))" "$failed"
[ "$failed" = 0 ]
