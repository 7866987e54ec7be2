#!/usr/bin/env python3
"""Compares parameter servers that hold whole layers with servers that hold equal bytes.

Exchanges the gradient of VGG-16, at an eighth of its size, between real processes: 2, 4 and 8 workers
with one server for two of them, each at its own site of a wan_lab with links of 100 Mbit/s. The
compute of a step is emulated. Needs root, takes ten minutes, and wants a quiet machine. Writes
docs/results/parameter_shards.md, .svg and rows/; the drawing needs python3-matplotlib.
  scripts/experiments/parameter_shards.py [--binary build/release/farstep] [--output docs/results] [--from ROWS.json]
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from experiment import REPOSITORY, make_parser, publish, pyplot_for, save, source, source_line, table, wrap
from findings import AS_ABOVE, Compared, as_paper, bullets, comparison

WORKERS = (2, 4, 8)
RATE_BITS_PER_SECOND = 100e6
BITS_OF_A_VALUE = 32
SCALE = 8
# Simonyan and Zisserman 2014, configuration D: 13 convolutions, then three dense layers, the first of
# which has 103 of the 138 million parameters.
CHANNELS = (3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512)
LAYERS = ([9 * before * after for before, after in zip(CHANNELS, CHANNELS[1:])]
          + [25088 * 4096, 4096 * 4096, 4096 * 1000])
STEP_SECONDS = 10.0
RULES = ("layer", "bytes")
PAPER_SPEED_UPS = {4: 1.20, 8: 1.66}  # by bytes against by layer, by workers
GOAL = 0.05  # of the ratio that the sizes imply


class Measured(NamedTuple):
    """One row: seconds of the exchange, of a whole step, and the busiest server's part of the model."""

    alone: float
    step: float
    largest: float


Results = dict[tuple[int, str], Measured]  # by workers and rule


def measure_one(bench: Path, workers: int, rule: str) -> Measured:
    """Runs the exchange in a lab of its own."""
    sizes = ",".join(str(max(1, size // SCALE)) for size in LAYERS)
    with tempfile.TemporaryDirectory(prefix="farstep-shards-") as folder:
        lab = [REPOSITORY / "scripts/wan_lab", "run", "--sites", str(workers), "--rate", str(int(RATE_BITS_PER_SECOND)),
               "--rtt", "1ms", "--folder", folder, "--"]
        command = [*lab, bench, "--sites", str(workers), "--tensors", sizes, "--servers", str(workers // 2),
                   "--bucket-mib", str(32 // SCALE), "--steps", "2", "--step-seconds", str(STEP_SECONDS),
                   *(["--layer"] if rule == "layer" else [])]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    if result.returncode != 0:
        raise RuntimeError(result.stdout + result.stderr)
    largest = float(re.search(r"adds up most has ([\d.]+)", result.stdout)[1])
    alone, exposed = map(float, re.search(r"mean: ([\d.]+) s alone, ([\d.]+) s exposed", result.stdout).groups())
    return Measured(alone, STEP_SECONDS + exposed, largest)


def busiest_models(workers: int, largest: float) -> float:
    """How many models pass through the busiest server's uplink: all means that it sends, and its own gradient."""
    return (workers - 1) * largest + (1 - largest)


def link_seconds(workers: int, largest: float) -> float:
    """What the busiest server's uplink needs for its bytes."""
    return busiest_models(workers, largest) * sum(LAYERS) / SCALE * BITS_OF_A_VALUE / RATE_BITS_PER_SECOND


def findings(results: Results, speed_ups: dict[int, float]) -> str:
    """What follows from the figures, beside the paper's and the sizes'."""
    sentences = []
    rises = all(speed_ups[fewer] < speed_ups[more] for fewer, more in zip(WORKERS[1:], WORKERS[2:]))
    faster = all(speed_ups[workers] > 1 for workers in PAPER_SPEED_UPS)
    sentences.append(f"By bytes is {'faster' if faster else 'not always faster'} with 4 workers and more: "
                     f"{as_paper(faster)}.")
    sentences.append(f"It gains {'more' if rises else 'no more'} with more workers: {as_paper(rises)}.")
    for workers in WORKERS:
        ratio = results[workers, "layer"].alone / results[workers, "bytes"].alone
        miss = abs(ratio / implied_ratio(results, workers) - 1)
        sentences.append(f"With {workers} workers the ratio is {100 * miss:.1f} % off that of the sizes (goal: "
                         f"{100 * GOAL:.0f} %): {'reached' if miss <= GOAL else '**not** reached'}.")
    by_layer, by_bytes = (link_seconds(WORKERS[-1], results[WORKERS[-1], rule].largest) for rule in RULES)
    sentences.append(f"The links alone: with {WORKERS[-1]} workers the busiest server's could send its bytes in "
                     f"{by_layer:.1f} s, and by bytes in {by_bytes:.1f} s.")
    return comparison([Compared(f"{workers} workers: a step by layer, by one by bytes", paper, speed_ups[workers])
                       for workers, paper in PAPER_SPEED_UPS.items()]) + "\n" + bullets(sentences)


def implied_ratio(results: Results, workers: int) -> float:
    """By layer against by bytes, if links alone mattered."""
    by_layer, by_bytes = (link_seconds(workers, results[workers, rule].largest) for rule in RULES)
    return by_layer / by_bytes


def page(record: dict) -> str:
    """The table, with what agrees with the paper."""
    results = {(row["workers"], row["rule"]): Measured(row["alone_seconds"], row["step_seconds"], row["largest"])
               for row in record["rows"]}
    rows, speed_ups = [], {}
    for workers in WORKERS:
        by_layer, by_bytes = (results[workers, rule] for rule in RULES)
        speed_ups[workers] = by_layer.step / by_bytes.step
        rows.append([str(workers), str(workers // 2), f"{by_layer.largest:.2f}", f"{by_bytes.largest:.2f}",
                     f"{by_layer.alone:.2f}", f"{by_bytes.alone:.2f}", f"{by_layer.alone / by_bytes.alone:.2f}",
                     f"{implied_ratio(results, workers):.2f}", f"{by_layer.step:.1f}", f"{by_bytes.step:.1f}",
                     f"{round(100 * (speed_ups[workers] - 1))} %"])
    head = ["workers", "servers", "largest shard, by layer", "by bytes", "exchange, by layer (s)", "by bytes (s)",
            "ratio", "ratio that the sizes imply", "step, by layer (s)", "by bytes (s)", "by bytes is faster by"]
    return ("# Parameter servers: shards by layer and by bytes\n\n"
            + wrap("Real processes in a lab, as the head of the script describes. The implied ratio is that of the "
                   f"bytes that the busiest server sends. A step has {STEP_SECONDS:.0f} s of compute, and its exchange "
                   "overlaps with backward, the last two thirds of them. The paper does not give its compute. One "
                   "worker alone has no exchange. With two workers there is one server, so both rules are the same.")
            + "\n" + source_line(record["source"]) + table(head, rows)
            + "\nAgainst the paper:\n\n" + AS_ABOVE + findings(results, speed_ups))


def draw(record: dict, path: Path):
    """Bars of a step's seconds."""
    pyplot = pyplot_for(path)
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for rule, offset in zip(RULES, (-0.2, 0.2)):
        axes.bar([place + offset for place in range(len(WORKERS))],
                 [row["step_seconds"] for row in record["rows"] if row["rule"] == rule], 0.4, label=f"by {rule}")
    axes.axhline(STEP_SECONDS, color="gray", linewidth=0.8)
    axes.set_xticks(range(len(WORKERS)), [f"{workers} workers" for workers in WORKERS])
    axes.set_ylabel("seconds of a step (line: compute alone)")
    axes.grid(True, axis="y", alpha=0.3)
    axes.legend()
    save(figure, path)


def measure(binary: str) -> dict:
    """The record: every number of workers by both rules."""
    bench = Path(binary).with_name("gradient_bench").resolve()
    record = {"source": source(), "rows": []}
    for workers in WORKERS:
        for rule in RULES:
            one = measure_one(bench, workers, rule)
            record["rows"].append({"workers": workers, "rule": rule, "alone_seconds": one.alone,
                                   "step_seconds": round(one.step, 2), "largest": one.largest})
    return record


def main() -> int:
    """Measures, writes and prints."""
    options = make_parser(__doc__).parse_args()
    publish("parameter_shards", options, lambda: measure(options.binary), page, draw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
