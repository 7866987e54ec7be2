"""What do sites that sync rarely lose against one that syncs always, and what closes the gap?"""

import json
import statistics
from collections.abc import Iterator

from studies.runs import (INNER, PEAK, TAILS, Bench, Run, data_parallel, equal_run,
                          whole_data_parallel)
from studies.tables import paired, spread

GAP_STEPS = 800

# Of synchronous runs from scratch, 2,000 steps. AdamW's best is 0.003, with 0.6M parameters.
PEAKS = ((0.002, "adamw"), (0.003, "adamw"), (0.006, "adamw"), (0.003, "muon"), (0.006, "muon"),
         (0.012, "muon"), (0.002, "muon"))


def peaks(seeds: list[int]) -> Iterator[Run]:
    """For choosing the inner learning rate."""
    return (whole_data_parallel(seeds[0], {**INNER[optimizer], "peak_learning_rate": peak})
            for peak, optimizer in PEAKS)


# What may close the gap: local steps, outer rate, momentum, how fragments are synced, and the inner
# peak learning rate; the synchronous run's is PEAK.
STREAMING = {"fragments": 4, "alpha": 0.5}
GAP_SWEEP = (
    (50, 0.7, 0.9, {}, PEAK), (50, 0.7, 0.5, {}, PEAK), (50, 0.7, 0.9, STREAMING, PEAK),
    (50, 0.7, 0.5, {}, PEAK / 2), (100, 0.7, 0.9, {}, PEAK), (100, 0.7, 0.5, {}, PEAK / 2),
    (50, 0.7, 0.5, STREAMING, PEAK), (50, 1.0, 0.5, {}, PEAK), (100, 0.7, 0.9, STREAMING, PEAK),
    (50, 1.0, 0.7, {}, PEAK), (50, 1.3, 0.5, {}, PEAK), (100, 1.0, 0.5, {}, PEAK),
    (50, 1.0, 0.0, {}, PEAK), (50, 0.7, 0.5, {}, 1.5 * PEAK), (100, 1.0, 0.7, {}, PEAK),
    (50, 0.7, 0.9, {"fragments": 4}, PEAK),
)
# What is told of with all seeds.
GAP_FINAL = ((0.7, 0.9, {}), (1.0, 0.5, {}), (0.7, 0.9, STREAMING), (1.0, 0.7, {}))


def gap_sweep(seed: int) -> Iterator[Run]:
    """The synchronous run, and four equal sites under every setting."""
    yield data_parallel(seed, GAP_STEPS)
    for steps, eta, mu, sync, peak in GAP_SWEEP:
        yield equal_run(seed, steps, eta, mu, total=GAP_STEPS, sync=sync,
                        inner={"peak_learning_rate": peak})


def gap_final(seed: int) -> Iterator[Run]:
    """What the other seeds repeat."""
    yield data_parallel(seed, GAP_STEPS)
    for steps in (50, 100):
        for eta, mu, sync in GAP_FINAL:
            yield equal_run(seed, steps, eta, mu, total=GAP_STEPS, sync=sync)


def gap_table(bench: Bench, seeds: list[int]) -> str:
    """Markdown: every setting against the synchronous run of the same tokens."""
    lines = ["| H | outer rate / momentum | sync | inner peak | seeds | mean loss | gap "
             "| loss of the mean of the last 8 thetas |", "|---|---|---|---|---|---|---|---|"]
    for steps, eta, mu, sync, peak in sorted(GAP_SWEEP, key=lambda one: one[0]):
        def run(seed: int, steps=steps, eta=eta, mu=mu, sync=sync, peak=peak) -> Run:
            return equal_run(seed, steps, eta, mu, total=GAP_STEPS, sync=sync,
                             inner={"peak_learning_rate": peak})

        results = [found for seed in seeds if (found := bench.find(run(seed)))]
        gaps = paired(bench, seeds, run, lambda seed: data_parallel(seed, GAP_STEPS))
        if not gaps:
            continue
        losses = [one["loss"] for one in results]
        of_means = [one["tails"][str(TAILS[-1])] for one in results]
        lines.append(f"| {steps} | {eta} / {mu} | {json.dumps(sync) if sync else ''} | {peak:g} "
                     f"| {len(results)} | {statistics.mean(losses):.4f} | {spread(gaps)} "
                     f"| {statistics.mean(of_means):.4f} |")
    return "\n".join(lines)
