#!/usr/bin/env python3
"""Compares parameter servers that hold whole layers with servers that hold equal bytes.

Exchanges the gradient of VGG-16, at an eighth of its size, between real processes: 2, 4 and 8 workers
with one server for two of them, each at its own site of a wan_lab with links of 100 Mbit/s. The
compute of a step is emulated. Needs root, takes ten minutes, and wants a quiet machine. Writes
docs/results/parameter_shards.md and .svg; the drawing needs python3-matplotlib.
  scripts/experiments/parameter_shards.py [--binary build/release/farstep] [--output docs/results]
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from experiment import REPOSITORY, make_parser, pyplot_for, save, table, write

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


class Measured(NamedTuple):
    """One row: seconds of the exchange, of a whole step, and the busiest server's part of the model."""

    alone: float
    step: float
    largest: float


def measure(bench: Path, workers: int, rule: str) -> Measured:
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


def page(results: dict[tuple[int, str], Measured]) -> str:
    """The table, with what agrees with the paper."""
    rows, misses = [], []
    for workers in WORKERS:
        by_layer, by_bytes = results[workers, "layer"], results[workers, "bytes"]
        implied = link_seconds(workers, by_layer.largest) / link_seconds(workers, by_bytes.largest)
        ratio = by_layer.alone / by_bytes.alone
        misses.append(f"{abs(100 * (ratio / implied - 1)):.0f} % with {workers}")
        rows.append([str(workers), str(workers // 2), f"{by_layer.largest:.2f}", f"{by_bytes.largest:.2f}",
                     f"{by_layer.alone:.2f}", f"{by_bytes.alone:.2f}", f"{ratio:.2f}",
                     f"{implied:.2f}", f"{by_layer.step:.1f}", f"{by_bytes.step:.1f}",
                     f"{round(100 * (by_layer.step / by_bytes.step - 1))} %"])
    most = WORKERS[-1]
    by_layer, by_bytes = (link_seconds(most, results[most, rule].largest) for rule in ("layer", "bytes"))
    head = ["workers", "servers", "largest shard, by layer", "by bytes", "exchange, by layer (s)", "by bytes (s)",
            "ratio", "ratio that the sizes imply", "step, by layer (s)", "by bytes (s)", "by bytes is faster by"]
    return ("# Parameter servers: shards by layer and by bytes\n\n"
            "`scripts/experiments/parameter_shards.py`: real processes in a lab, as its head describes. The implied\n"
            "ratio is that of the bytes that the busiest server sends. One worker alone has no exchange.\n\n"
            + table(head, rows) + f"""
A step has {STEP_SECONDS:.0f} s of compute, and its exchange overlaps with backward, the last two thirds of them.

- **Agrees with the paper:** by bytes is faster, and more so with more workers. The paper has 20 % with 4 workers and
  66 % with 8. The share depends on how long the compute of a step is, which the paper does not give.
- **The ratio differs from that of the sizes** by {", ".join(misses)} workers. [What decides
  it](../results.md#strategies-that-take-every-step-together).
- **By layer** each server has a pipeline of its own, so the servers of small layers work while that of the large one
  does. With two workers there is one server, so both rules are the same.
- **The links alone,** with {most} workers: the busiest server's could send its bytes in {by_layer:.1f} s, and by bytes
  in {by_bytes:.1f} s.
""")


def draw(results: dict[tuple[int, str], Measured], path: Path):
    """Bars of a step's seconds."""
    pyplot = pyplot_for(path)
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for rule, offset in (("layer", -0.2), ("bytes", 0.2)):
        axes.bar([place + offset for place in range(len(WORKERS))],
                 [results[workers, rule].step for workers in WORKERS], 0.4, label=f"by {rule}")
    axes.axhline(STEP_SECONDS, color="gray", linewidth=0.8)
    axes.set_xticks(range(len(WORKERS)), [f"{workers} workers" for workers in WORKERS])
    axes.set_ylabel("seconds of a step (line: compute alone)")
    axes.grid(True, axis="y", alpha=0.3)
    axes.legend()
    save(figure, path)


def main() -> int:
    """Measures, writes and prints."""
    options = make_parser(__doc__).parse_args()
    bench = Path(options.binary).with_name("gradient_bench").resolve()
    results = {(workers, rule): measure(bench, workers, rule) for workers in WORKERS for rule in ("layer", "bytes")}
    write(options.output / "parameter_shards.md", page(results))
    draw(results, options.output / "parameter_shards.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
