"""How should a run end? By the outer step of its last rounds, and by their codec."""

import json
import statistics
from collections.abc import Iterator
from dataclasses import replace

from studies.gap import STREAMING
from studies.optimizers import Sites
from studies.runs import INNER, Bench, Run
from studies.tables import paired, spread

MEAN_ROUNDS = (0, 1, 2, 4)
STEPS = tuple(Sites(optimizer, steps, eta, mu, sync, warm=warm)
              for warm in (True, False) for optimizer in INNER
              for steps, eta, mu, sync in ((50, 1.0, 0.7, {}), (100, 1.0, 0.5, {}),
                                           (50, 0.7, 0.9, {}), (50, 0.7, 0.9, STREAMING)))
STEPS += (Sites("muon", 500, 1.0, 0.5, total=4000),)
# By codec with error feedback and fine rounds, at H 50.
EVERY_50 = Sites("muon", 50, 1.0, 0.7, mean_rounds=1)
CODECS_OF_50 = tuple({"codec": {**codec, "error_feedback": True}, "fine_rounds": rounds,
                      "fine_codec": "int8"}
                     for codec in ({"kind": "int2", "block": 512}, {"kind": "top_k"})
                     for rounds in (0, 1, 2, 4))
# 32 rounds of 500 steps. The inner peak is half of that of many syncs: it is no worse, and the
# deltas are smaller. A block is a row, as in wide models, where a row has more values.
EVERY_500 = Sites("muon", 500, 1.0, 0.5, inner={"peak_learning_rate": 0.003}, total=16000,
                  mean_rounds=1)
CODECS_OF_500 = (
    {"codec": {"kind": "int4"}},
    {"codec": {"kind": "int4"}, "fine_rounds": 1, "fine_codec": "int8"},
    *({"codec": {"kind": "int2", "block": 64, "error_feedback": True}, "fine_rounds": rounds,
       "fine_codec": kind}
      for rounds, kind in ((4, "int4"), (2, "int8"), (4, "int8"))))


def last_steps(seeds: list[int]) -> Iterator[Run]:
    """Every setting with so many last steps to the mean."""
    for seed in seeds:
        for sites in STEPS:
            for rounds in MEAN_ROUNDS:
                yield replace(sites, mean_rounds=rounds).run(seed)


def compared_codecs() -> list[tuple[Sites, dict]]:
    """Sites, and each sync with a codec to compare with fp32."""
    return ([(EVERY_50, sync) for sync in CODECS_OF_50] +
            [(EVERY_500, sync) for sync in CODECS_OF_500])


def fine_codecs(seeds: list[int]) -> Iterator[Run]:
    """Coarse codecs with so many fine rounds at last."""
    for seed in seeds:
        for base in (EVERY_50, EVERY_500):
            yield base.run(seed)
        yield from (sites.with_sync(sync).run(seed) for sites, sync in compared_codecs())


def step_table(bench: Bench, seeds: list[int]) -> str:
    """Markdown: the loss without steps to the mean, and what so many of them add."""
    lines = ["| optimizer | begins from | H | outer rate / momentum | sync | seeds | loss | "
             + " | ".join(f"{rounds} to the mean" for rounds in MEAN_ROUNDS[1:]) + " |",
             "|---" * (7 + len(MEAN_ROUNDS) - 1) + "|"]
    for sites in STEPS:
        base = [loss for seed in seeds if (loss := bench.loss(sites.run(seed)))]
        if not base:
            continue
        cells = []
        for rounds in MEAN_ROUNDS[1:]:
            found = paired(bench, seeds, replace(sites, mean_rounds=rounds).run, sites.run)
            cells.append(spread(found) if found else "")
        lines.append(f"| {sites.optimizer} | {'warm start' if sites.warm else 'scratch'} "
                     f"| {sites.steps} | {sites.eta} / {sites.mu} "
                     f"| {json.dumps(sites.sync) if sites.sync else ''} | {len(base)} "
                     f"| {statistics.mean(base):.4f} | {' | '.join(cells)} |")
    return "\n".join(lines)
