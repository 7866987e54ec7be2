#!/usr/bin/env bash
# From a clean clone to a model trained by four sites of unequal speed on this machine: installs what is
# missing, builds, tokenizes six novels, trains for 8 outer rounds with equal work at every site, then
# for 8 with work as the planner gives it, and shows who waited for whom. With --rounds it trains for so
# many instead.
# Usage: scripts/quickstart.sh [--rounds N]
set -euo pipefail
. "$(dirname "$0")/script_help.sh"
answer_help "$@"
rounds=8
if [ "${1:-}" = --rounds ] && [[ "${2:-}" =~ ^[1-9][0-9]*$ ]]; then
  rounds=$2
  shift 2
fi
[ $# = 0 ] || refuse_argument "$1"
cd "$(dirname "$0")/.."

farstep=build/release/farstep
data=data/quickstart
runs=runs/quickstart

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

scripts/setup.sh

say "Building $farstep"
if [ ! -f build/release/CMakeCache.txt ]; then
  # nvcc takes minutes for code that only a GPU runs.
  cuda=OFF
  if (. scripts/set_up_parts.sh && wants_gpu); then cuda=AUTO; fi
  cmake --preset release -DFARSTEP_TESTS=OFF -DFARSTEP_CUDA=$cuda >/dev/null
fi
cmake --build --preset release --target farstep

if [ ! -f "$data/dataset.json" ]; then
  say "Tokenizing six novels"
  $farstep tokenize .deps/corpus/austen --output "$data" --train-vocabulary 2048
fi

rm -rf "$runs"
for policy in uniform hybrid; do
  say "Training at four sites of unequal speed, emulated by this machine; policy: $policy"
  $farstep launch configs/quickstart --set output="$PWD/$runs/$policy" --set run.plan.policy=$policy \
    --set run.outer.rounds="$rounds"
done

say "uniform: every site does the same number of steps, and the fast ones wait"
$farstep report "$runs/uniform" --idle --html "$runs/uniform.html"

say "hybrid: the planner measures every site and gives it the work with which nobody waits"
$farstep report "$runs/hybrid" --idle --html "$runs/hybrid.html"

say "What the model writes after $(du -h --apparent-size .deps/corpus/austen | cut -f1) of Jane Austen"
$farstep generate "$runs/hybrid/node1" --data "$data" --prompt "It is a truth universally" --tokens 60

say "The reports as pages: $PWD/$runs/uniform.html and $PWD/$runs/hybrid.html"
