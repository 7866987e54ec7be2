#!/usr/bin/env python3
"""What do sites that sync rarely lose against one that syncs always, and what helps? Standard
library only.

Every run is made by sites_in_turn, in one process on one core. A seed gives the same windows in
every run, so losses are compared in pairs. Long runs begin from a warm start, one for each inner
optimizer: 600 steps of one site with the batch of all four. A rerun goes on after the last finished
run. The folder studies/ has the studies.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from studies import averaging, ends, feedback, gap, optimizers, run_lengths
from studies.runs import INNER, MODELS, Bench, Run, data_parallel, warm_start

REPOSITORY = Path(__file__).resolve().parents[2]


def warm_starts(seeds: list[int]) -> Iterator[Run]:
    """Where all long runs begin."""
    return (warm_start(seeds[0], optimizer) for optimizer in INNER)


# The runs of each, in the order in which they are made.
STUDIES: dict[str, Callable[[list[int]], Iterable[Run]]] = {
    "warm": warm_starts,
    "peaks": gap.peaks,
    "rules": averaging.rule_sweep,
    "first": averaging.first_runs,
    "gap": lambda seeds: (run for seed in seeds for run in gap.gap_sweep(seed)),
    "gap_final": lambda seeds: (run for seed in seeds for run in gap.gap_final(seed)),
    "muon_sweep": optimizers.muon_sweep,
    "muon": optimizers.all_seeds,
    "muon_more": optimizers.more,
    "muon_large": optimizers.large_batches,
    "codecs": optimizers.codecs,
    "few_syncs": optimizers.few_syncs,
    "last_steps": ends.last_steps,
    "fine_codecs": ends.fine_codecs,
    "feedback": feedback.feedback,
    "int2_to_zero": feedback.int2_to_zero,
    "rounds": run_lengths.lengths,
}


def print_tables(bench: Bench, seeds: list[int]) -> None:
    """All that is known so far."""
    base = [loss for seed in seeds if (loss := bench.loss(data_parallel(seed, gap.GAP_STEPS)))]
    print("synchronous:", *(f"{loss:.4f}" for loss in base))
    print(averaging.rule_table(bench, seeds, averaging.long_run,
                               [(eta, 0.9) for eta in averaging.ETAS]))
    print(averaging.rule_table(bench, seeds, averaging.first_rounds, [(0.7, 0.5)]))
    print(gap.gap_table(bench, seeds))
    print(optimizers.muon_table(bench, seeds))
    print(optimizers.codec_table(bench, seeds, optimizers.compared_codecs()))
    print(ends.step_table(bench, seeds))
    print(optimizers.codec_table(bench, seeds, ends.compared_codecs()))
    print(optimizers.codec_table(bench, seeds, feedback.compared()))
    print(optimizers.codec_table(bench, seeds, feedback.compared_to_zero()))
    print(run_lengths.length_table(bench, seeds))


def main() -> None:
    """Makes what is missing of the named studies."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="+", choices=[*STUDIES, "tables"])
    parser.add_argument("--binary", type=Path, default=REPOSITORY / "build/release/sites_in_turn")
    parser.add_argument("--data", type=Path, default=REPOSITORY / "data/quickstart")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs/learning")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--model", choices=MODELS, default="0.2")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--prefix", default="nice -n 19", help="what each run is started by")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    for study in arguments.study:
        if study == "tables":
            print_tables(bench, arguments.seeds)
        else:
            bench.make_all(STUDIES[study](arguments.seeds))


if __name__ == "__main__":
    main()
