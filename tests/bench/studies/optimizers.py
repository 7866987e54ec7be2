"""What do AdamW and Muon lose at sites that sync rarely, and what does a codec add to it?

Each optimizer's base is a synchronous run by itself, and its own warm start.
"""

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from studies.gap import GAP_STEPS, STREAMING
from studies.runs import BATCH, INNER, Bench, Run, data_parallel, equal_run
from studies.tables import paired, spread

FEW_SYNCS_STEPS = (4000, 16000)  # in 8 and 32 rounds of H 500
# With error feedback; studies/feedback.py compares it with none.
CODECS = tuple({"codec": {**codec, "error_feedback": True}} for codec in (
    {"kind": "int2", "block": 512}, {"kind": "int4"}, {"kind": "top_k"}))
# A row of these models' matrices has 64 values.
CODECS_OF_FEW_SYNCS = tuple({"codec": {**codec, "error_feedback": True}} for codec in (
    {"kind": "int4"}, {"kind": "int2", "block": 512}, {"kind": "int2", "block": 64},
    {"kind": "int2", "block": 16}))


@dataclass(frozen=True)
class Sites:
    """Four equal sites of an optimizer."""

    optimizer: str
    steps: int  # H
    eta: float
    mu: float
    sync: dict = field(default_factory=dict)
    inner: dict = field(default_factory=dict)  # what differs from INNER
    warm: bool = True
    total: int = GAP_STEPS
    batch: int = BATCH  # of a site
    mean_rounds: int = 0

    def changes(self) -> dict:
        """What the run and its base share."""
        return {"inner": {**INNER[self.optimizer], **self.inner}, "warm": self.warm,
                "batch": self.batch}

    def run(self, seed: int) -> Run:
        """Of that seed."""
        return equal_run(seed, self.steps, self.eta, self.mu, total=self.total, sync=self.sync,
                         mean_rounds=self.mean_rounds, **self.changes())

    def base(self, seed: int) -> Run:
        """The synchronous run with the same tokens. Its inner peak is always the optimizer's."""
        return data_parallel(seed, self.total, **{**self.changes(), "inner": INNER[self.optimizer]})

    def with_sync(self, sync: dict) -> "Sites":
        """The same with other settings of a sync."""
        return replace(self, sync=sync)


# Settings from the warm start, in one seed: H, outer rate, momentum, sync, inner peak.
MUON_SWEEP = tuple(
    Sites("muon", steps, eta, mu, sync, {} if peak is None else {"peak_learning_rate": peak})
    for steps, eta, mu, sync, peak in (
        (50, 1.0, 0.7, {}, None), (50, 1.0, 0.7, {}, 0.003), (50, 0.7, 0.9, STREAMING, None),
        (50, 1.0, 0.5, {}, None), (50, 0.7, 0.9, {}, None), (100, 1.0, 0.5, {}, None),
        (50, 0.7, 0.5, {}, None), (50, 1.0, 0.9, {}, None), (50, 1.0, 0.7, {}, 0.0015),
        (100, 1.0, 0.7, {}, None)))
# What all seeds repeat: both optimizers at AdamW's two best settings.
ALL_SEEDS = tuple(Sites(optimizer, steps, eta, mu, warm=warm)
                  for warm in (True, False) for optimizer in reversed(INNER)
                  for steps, eta, mu in ((50, 1.0, 0.7), (100, 1.0, 0.5)))
# The batch of a site that closes Muon's gap, from the warm start.
LARGE_BATCHES = tuple(Sites("muon", 50, 1.0, mu, total=400, batch=64) for mu in (0.5, 0.7))
# More that may close the gap, from the warm start.
MORE = (
    Sites("muon", 50, 1.0, 0.7, total=400, batch=16), Sites("muon", 50, 1.0, 0.7, total=400),
    Sites("adamw", 50, 1.0, 0.7, total=400, batch=16), Sites("adamw", 50, 1.0, 0.7, total=400),
    Sites("muon", 50, 1.0, 0.7, total=3200),
    *(Sites(optimizer, 50, eta, mu, total=400, batch=16)
      for optimizer in ("muon", "adamw") for eta, mu in ((1.0, 0.5), (0.7, 0.5), (1.0, 0.0))),
    *LARGE_BATCHES,
    Sites("muon", 50, 1.0, 0.5, total=3200),
)
FEW_SYNCS = tuple(Sites("muon", 500, 1.0, 0.5, total=total) for total in FEW_SYNCS_STEPS)


def with_bases(chosen: tuple[Sites, ...], seeds: list[int]) -> Iterator[Run]:
    """Runs of these sites, each base before the first that needs it."""
    told: list[Run] = []
    for seed in seeds:
        for sites in chosen:
            for run in (sites.base(seed), sites.run(seed)):
                if run.file not in (other.file for other in told if other.warm == run.warm):
                    told.append(run)
                    yield run


def muon_sweep(seeds: list[int]) -> Iterator[Run]:
    """Muon's outer settings, in one seed."""
    return with_bases(MUON_SWEEP, seeds[:1])


def all_seeds(seeds: list[int]) -> Iterator[Run]:
    """Both optimizers, from the warm start and from scratch."""
    return with_bases(ALL_SEEDS, seeds)


def more(seeds: list[int]) -> Iterator[Run]:
    """What else may close Muon's gap, in one seed."""
    return with_bases(MORE, seeds[:1])


def large_batches(seeds: list[int]) -> Iterator[Run]:
    """Muon with the batch that closes its gap."""
    return with_bases(LARGE_BATCHES, seeds)


def codecs(seeds: list[int]) -> Iterator[Run]:
    """Each codec at H 50."""
    for seed in seeds:
        for optimizer in reversed(INNER):
            sites = Sites(optimizer, 50, 1.0, 0.7)
            yield sites.run(seed)
            yield from (sites.with_sync(sync).run(seed) for sync in CODECS)


def few_syncs(seeds: list[int]) -> Iterator[Run]:
    """The least bytes: H 500 by few bits against fp32 deltas."""
    for seed in seeds:
        for sites in FEW_SYNCS:
            yield sites.run(seed)
            yield from (sites.with_sync(sync).run(seed) for sync in CODECS_OF_FEW_SYNCS)


def muon_table(bench: Bench, seeds: list[int]) -> str:
    """Markdown: sites against the synchronous run by the same optimizer."""
    lines = ["| optimizer | begins from | sites' batch | steps | H | outer rate / momentum | other "
             "| seeds | synchronous | mean loss | gap | gap, % |", "|" + "---|" * 12]
    rows = sorted({json.dumps(vars(sites), sort_keys=True): sites
                   for sites in MUON_SWEEP + ALL_SEEDS + MORE}.items(), reverse=True)
    for _, sites in sorted(rows, key=lambda row: (not row[1].warm, row[1].optimizer,
                                                  row[1].batch, row[1].total, row[1].steps)):
        gaps = paired(bench, seeds, sites.run, sites.base)
        if not gaps:
            continue
        both = [(loss, base) for seed in seeds if (loss := bench.loss(sites.run(seed)))
                and (base := bench.loss(sites.base(seed)))]
        shares = [100 * (loss / base - 1) for loss, base in both]
        other = json.dumps({**sites.sync, **sites.inner}) if sites.sync or sites.inner else ""
        lines.append(
            f"| {sites.optimizer} | {'warm start' if sites.warm else 'scratch'} | {sites.batch} "
            f"| {sites.total} | {sites.steps} | {sites.eta} / {sites.mu} | {other} | {len(gaps)} "
            f"| {statistics.mean(base for _, base in both):.4f} "
            f"| {statistics.mean(loss for loss, _ in both):.4f} | {spread(gaps)} "
            f"| {statistics.mean(shares):+.2f} |")
    return "\n".join(lines)


def compared_codecs() -> list[tuple[Sites, dict]]:
    """Sites, and each sync with a codec to compare with fp32."""
    of_h_50 = [(Sites(optimizer, 50, 1.0, 0.7), sync) for optimizer in INNER for sync in CODECS]
    return of_h_50 + [(sites, sync) for sites in FEW_SYNCS for sync in CODECS_OF_FEW_SYNCS]


def codec_table(bench: Bench, seeds: list[int], compared: list[tuple[Sites, dict]]) -> str:
    """Markdown: each codec against fp32 deltas."""
    lines = ["| optimizer | H | steps | codec | seeds | mean loss | minus that of fp32 |",
             "|---|---|---|---|---|---|---|"]
    for sites, sync in compared:
        encoded = sites.with_sync(sync)
        losses = [loss for seed in seeds if (loss := bench.loss(encoded.run(seed)))]
        differences = paired(bench, seeds, encoded.run, sites.run)
        if differences:
            lines.append(f"| {sites.optimizer} | {sites.steps} | {sites.total} | {json.dumps(sync)} "
                         f"| {len(differences)} | {statistics.mean(losses):.4f} "
                         f"| {spread(differences)} |")
    return "\n".join(lines)
