#!/usr/bin/env bash
# Formats every C++ file of the tree; with --check it changes nothing and fails if one would change.
# clang-format's versions differ in small things: only version 14 (Debian 12's) is the judge. Without it
# nothing is done, with exit code 77.
# Usage: scripts/format.sh [--check]
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"
[ $# = 0 ] || [ "$*" = --check ] || refuse_argument "${*: -1}"
cd "$(dirname "$0")/.."

formatter=$(command -v clang-format-14 || command -v clang-format || true)
if ! "${formatter:-false}" --version | grep -q 'version 14'; then
  echo "SKIPPED: there is no clang-format 14"
  exit 77
fi
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.h' '*.cpp' '*.cu')
if [ "${1:-}" = --check ]; then
  "$formatter" --dry-run --Werror "${files[@]}"
else
  "$formatter" -i "${files[@]}"
fi
