#!/usr/bin/env bash
# Sets up, builds, and runs every test that can run on this machine: all of them on the release build,
# then those of the torch-free layers under AddressSanitizer with UBSan, and those of them that start
# threads under ThreadSanitizer; and some thousand inputs of each fuzz target, the same ones each time.
# A test that fails is run once more; one that passes then is named as flaky, which is a defect to
# mend, but not of the change that is tested. The last line is "N passed, N failed".
# Usage: scripts/test.sh
set -uo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"
[ $# = 0 ] || refuse_argument "$1"
cd "$(dirname "$0")/.."

results=build/test-results
mkdir -p "$results"
rm -f "$results"/*.log

fail_early() {
  wait  # for set-up, which may go on
  printf '%s\n' "$1"
  printf '0 passed, 1 failed\n'
  exit 1
}

# run_preset PRESET [CTEST_OPTION ...]: builds the preset and runs its tests.
run_preset() {
  local preset=$1
  shift
  printf '\n== %s: build\n' "$preset"
  cmake --preset "$preset" -DFARSTEP_TESTS=ON >"$results/$preset-configure.txt" 2>&1 ||
    { cat "$results/$preset-configure.txt"; return 1; }
  cmake --build --preset "$preset" >"$results/$preset-build.txt" 2>&1 ||
    { tail -n 60 "$results/$preset-build.txt"; return 1; }
  if [ -n "$oracles" ]; then
    wait "$oracles" || { cat "$results/oracles.txt"; return 1; }
    oracles=''
  fi
  printf '== %s: tests\n' "$preset"
  ctest --preset "$preset" --repeat until-pass:2 "$@" 2>&1 | tee "$results/$preset.log"
  return 0  # failures are counted below
}

scripts/setup.sh --tests || fail_early "set-up failed"
# Tests on the release build need PyTorch, the build does not. FARSTEP_ORACLES=off leaves it out.
scripts/setup.sh --oracles >"$results/oracles.txt" 2>&1 &
oracles=$!
run_preset release || fail_early "the release build failed"
run_preset asan || fail_early "the asan build failed"
run_preset tsan || fail_early "the tsan build failed"
run_preset fuzz || fail_early "the fuzz build failed"

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
