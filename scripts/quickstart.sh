#!/usr/bin/env bash
# From a clean clone to a model trained by four sites of unequal speed on this machine: installs what is
# missing, builds, tokenizes six novels, trains for 10 outer rounds, and shows who waited for whom.
# Usage: scripts/quickstart.sh
set -euo pipefail
cd "$(dirname "$0")/.."

farstep=build/release/farstep
data=data/quickstart
run=runs/quickstart

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

scripts/setup.sh

say "Building $farstep"
[ -f build/release/CMakeCache.txt ] || cmake --preset release -DFARSTEP_TESTS=OFF >/dev/null
cmake --build --preset release --target farstep

if [ ! -f "$data/dataset.json" ]; then
  say "Tokenizing six novels"
  $farstep tokenize .deps/corpus/austen --output "$data" --train-vocabulary 2048
fi

say "Training at four sites: the step times of four unequal machines, played by this one"
rm -rf "$run"
$farstep launch configs/quickstart

say "Who waited, and for what"
$farstep report "$run" --html "$run/report.html"

say "What the model writes after $(du -h --apparent-size .deps/corpus/austen | cut -f1) of Jane Austen"
$farstep generate "$run/node1" --data "$data" --prompt "It is a truth universally" --tokens 60

say "The report as a page: $PWD/$run/report.html"
