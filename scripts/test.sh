#!/usr/bin/env bash
# Sets up, builds the release preset, and tests it: all that is quick, and the end-to-end tests that any
# change can break. --thorough adds the rest: the slow end-to-end tests, those of layers that optimisation
# hardly changes, and all that can run under AddressSanitizer with UBSan (with some thousand inputs of
# each fuzz target) and ThreadSanitizer. What a run of this script on the same tree has done is not done
# again.
# --other-debians, after --thorough, does also what scripts/other_debian.sh does.
# A line a minute says how far it is. A test is run once; one that is skipped says what the machine lacks,
# or it failed. The last line is "N passed, N failed". All output is in build/test-results.
# Usage: scripts/test.sh [--thorough [--other-debians]]
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"
case "$*" in
  '' | --thorough | '--thorough --other-debians') ;;
  *) refuse_argument "${*: -1}" ;;
esac
cd "$(dirname "$0")/.."

if ! scripts/setup.sh --tests; then
  printf 'set-up failed\n0 passed, 1 failed\n'
  exit 1
fi
exec python3 scripts/run_tests.py "$@"
