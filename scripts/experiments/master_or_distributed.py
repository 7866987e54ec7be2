#!/usr/bin/env python3
"""Compares one device with two and four, by a master and without one: images a second by batch.

Trains PyramidNet of 20 layers and width 16 on Fashion-MNIST, each device at a site of its own with one thread. Without
a master all workers add up the gradient, each a part of it (ring_all_reduce with the direct exchange, because emulated
links do not slow down Gloo's ring). Two workers are real, over the loopback interface and over emulated links of
1 Gbit/s. Four workers would share two cores, so they are slowed: an image takes four times as long as on a real
device, a link has a quarter of the rate, and the figures are multiplied by four. Two slowed workers show what that
changes. `farstep profile` finds the largest batch of a device with 256 MiB. Runs have priority over other work if root
starts this. Needs dataset-fashion-mnist, takes 15 minutes, and writes docs/results/master_or_distributed.md and .svg;
the drawing needs python3-matplotlib.
  scripts/experiments/master_or_distributed.py [--binary build/release/farstep] [--output docs/results]
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from experiment import make_parser, pyplot_for, save, table, write
from real_run import IMAGES, REAL_TIME, step_periods, train, write_configs

BATCHES = (8, 16, 32, 64, 128, 256, 512)
MEMORY_BYTES = 256 << 20
LINK_BITS_PER_SECOND, LINK_DELAY_SECONDS = 1e9, 0.0001
SLOWED = 4
LEAST_STEPS, IMAGES_OF_A_RUN = 7, 768
TURNS = 3  # of what is not slowed
NOTES = """
Two cores of an Intel Xeon (Emerald Rapids), other work beside it, which gets up to 5 % of a core from real-time
priority. Rows that are not slowed have this priority, and vary by some 5 % for that reason and others. Slowed rows
are one run each, with the highest priority of ordinary processes.

- **Agrees with the paper:** a master pays only from some batch on. With four workers and 1 Gbit/s it trains 157 images
  a second in batches of 8, one device 211; it needs a batch of 16 to pass it. The paper's DataParallel needs 512 to
  match one GPU at 256. Without a master training is faster at every batch where links count, by 32 to 90 % in batches
  of 8. With four workers it gains with every larger batch.
- **Agrees, memory:** several devices take batches in one pass that one cannot hold: 144 and 288 images where one device
  holds 72. These are multiples of what one device holds; the runs themselves had no limit of memory.
- **Differs:** no batch fails. Farstep cuts a batch that a device cannot hold into several passes, so one device trains
  batches of 512 too, about as fast as smaller ones. More devices bring speed, and room for models, not a larger batch.
- **Differs:** on the loopback interface master and no master are alike within 7 %, because a gradient has only 1.2 MB.
  In the paper's DataParallel one process drives all GPUs, and hands out data and model in every step. Farstep's master
  is one process among equals, and each reads its own data.
- **The slowed rows** of two workers are within 7 % of the real ones, so those of four workers can be trusted about so
  far. They leave out that four processes share the machine's memory.
"""


class Case(NamedTuple):
    """A row of the table."""

    name: str
    workers: int
    kind: str
    has_links: bool = False
    slowed: int = 1


CASES = (Case("one device", 1, "ring_all_reduce"),
         Case("2 workers, master", 2, "data_parallel_master"),
         Case("2 workers, distributed", 2, "ring_all_reduce"),
         Case("2 workers, master, 1 Gbit/s", 2, "data_parallel_master", True),
         Case("2 workers, distributed, 1 Gbit/s", 2, "ring_all_reduce", True),
         Case("2 slowed workers, master, 1 Gbit/s", 2, "data_parallel_master", True, SLOWED),
         Case("2 slowed workers, distributed, 1 Gbit/s", 2, "ring_all_reduce", True, SLOWED),
         Case("4 slowed workers, master, 1 Gbit/s", 4, "data_parallel_master", True, SLOWED),
         Case("4 slowed workers, distributed, 1 Gbit/s", 4, "ring_all_reduce", True, SLOWED))


def run_file(case: Case, batch: int, most: int) -> dict:
    """A run of one round, in micro-batches of at most `most` images, all alike."""
    own = batch // case.workers
    passes = -(-own // most)
    return {"model": {"family": "images", "images": {"preset": "pyramidnet", "width": 16, "depth": 20}},
            "data": {"images": {"crop_padding": 0}}, "strategy": {"kind": case.kind},
            "sync": {"exchange": "direct" if case.kind == "ring_all_reduce" else "parameter_server"},
            "outer": {"rounds": 1},
            "plan": {"base_steps": max(LEAST_STEPS, IMAGES_OF_A_RUN // batch), "base_batch": own,
                     "micro_batch": -(-own // passes)},
            "evaluate": {"every_rounds": 0}, "checkpoint": {"every_rounds": 10000}}


def largest_batch(binary: str) -> int:
    """The most images that one device holds in one pass, by real steps."""
    device = {"kind": "cpu", "threads": 1, "memory_bytes": MEMORY_BYTES}
    with tempfile.TemporaryDirectory(prefix="farstep-memory-") as temporary:
        write_configs(Path(temporary), run_file(CASES[0], 32, 32), [{"data": str(IMAGES), "devices": [device]}])
        result = subprocess.run([*REAL_TIME, binary, "profile", "--config", Path(temporary) / "node1.json", "--json",
                                 "--seconds", "5"], capture_output=True, text=True, check=False, timeout=600)
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return json.loads(result.stdout)["devices"][0]["max_micro_batch"]


def images_per_second(binary: str, case: Case, batch: int, most: int, image_seconds: float, turn: int) -> float:
    """Of all workers together, by the median step; `image_seconds` is the time of an image on a real device."""
    print(f"turn {turn}: {case.name}, batch {batch}", file=sys.stderr)
    site: dict = {"data": str(IMAGES)}
    if case.has_links:
        site["network"] = {"address": "127.0.0.1", "emulate": {
            "rate_bits_per_second": LINK_BITS_PER_SECOND / case.slowed,
            "delay_seconds": LINK_DELAY_SECONDS * case.slowed}}
    if case.slowed > 1:
        site["devices"] = [{"kind": "cpu", "threads": 1, "emulate": {"sequence_seconds": image_seconds * case.slowed}}]
    periods = step_periods(train(binary, run_file(case, batch, most), [site] * case.workers, timed=True))
    return case.slowed * batch / statistics.median(periods[1:])


Speeds = dict[Case, dict[int, float]]


def page(speeds: Speeds, most: int) -> str:
    """The table, with what agrees with the paper."""
    rows = [[case.name, str(most * case.workers),
             *(f"{speed:.0f}{'*' if batch > most * case.workers else ''}" for batch, speed in by_batch.items())]
            for case, by_batch in speeds.items()]
    head = ["", "largest batch in one pass", *(f"batch {batch}" for batch in BATCHES)]
    return ("# One device, a master, and no master\n\n"
            "`scripts/experiments/master_or_distributed.py`: its head describes the runs. Images a second of all\n"
            "workers, by the median step and, of what is not slowed, the median of three runs; a batch is that of all\n"
            "workers. The paper is that of Han et al.: PyramidNet on CIFAR-10, one GPU against DataParallel (a\n"
            "master) and DistributedDataParallel.\n\n"
            "![Images a second by batch](master_or_distributed.svg)\n\n" + table(head, rows)
            + f"\nA device with {MEMORY_BYTES >> 20} MiB holds {most} images in one pass. \\* A larger batch takes\n"
            "several passes, whose gradients are added up.\n" + NOTES)


def draw(speeds: Speeds, path: Path):
    """A line for each case."""
    figure, axes = pyplot_for(path).subplots(figsize=(9, 5))
    for case, by_batch in speeds.items():
        style = "--" if case.kind == "data_parallel_master" else "-"
        axes.plot(list(by_batch), list(by_batch.values()), linestyle=style, label=case.name,
                  marker="s" if case.slowed > 1 else "o")
    axes.set_xscale("log", base=2)
    axes.set_xticks(BATCHES, [str(batch) for batch in BATCHES])
    axes.set_xlabel("batch of all workers")
    axes.set_ylabel("images a second")
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=8)
    save(figure, path)


def measure(binary: str, most: int) -> Speeds:
    """Medians of the turns, so that the machine's drift meets all cases alike."""
    runs: dict[Case, dict[int, list[float]]] = {case: {batch: [] for batch in BATCHES} for case in CASES}
    image_seconds = 0.0
    for turn in range(TURNS):
        for case in CASES if turn == 0 else [case for case in CASES if case.slowed == 1]:
            for batch, speeds in runs[case].items():
                speeds.append(images_per_second(binary, case, batch, most, image_seconds, turn))
            image_seconds = image_seconds or 1 / max(speeds[0] for speeds in runs[CASES[0]].values())
    return {case: {batch: statistics.median(speeds) for batch, speeds in by_batch.items()}
            for case, by_batch in runs.items()}


def main() -> int:
    """Measures, writes and prints."""
    options = make_parser(__doc__).parse_args()
    most = largest_batch(options.binary)
    speeds = measure(options.binary, most)
    write(options.output / "master_or_distributed.md", page(speeds, most))
    draw(speeds, options.output / "master_or_distributed.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
