#!/usr/bin/env python3
"""Compares one device with two and four, by a master and without one: images a second by batch.

Trains PyramidNet of 20 layers and width 16 on Fashion-MNIST, each device at a site of its own with one thread. Without
a master all workers add up the gradient, each a part of it (ring_all_reduce with the direct exchange, because emulated
links do not slow down Gloo's ring). Two workers are real, over the loopback interface and over emulated links of
1 Gbit/s. Four workers would share two cores, so they are slowed: an image takes four times as long as on a real
device, a link has a quarter of the rate, and the figures are multiplied by four. Two slowed workers show what that
changes. `farstep profile` finds the largest batch of a device with 256 MiB. Runs have priority over other work if root
starts this. Needs dataset-fashion-mnist, takes 15 minutes, and writes docs/results/master_or_distributed.md, .svg and
rows/; the drawing needs python3-matplotlib.
  scripts/experiments/master_or_distributed.py [--binary build/release/farstep] [--output docs/results]
      [--from ROWS.json]
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from experiment import make_parser, publish, pyplot_for, save, source, source_line, table, wrap
from findings import AS_ABOVE, Compared, as_paper, bullets, comparison, names, span
from real_run import IMAGES, REAL_TIME, step_periods, train, write_configs

BATCHES = (8, 16, 32, 64, 128, 256, 512)
MEMORY_BYTES = 256 << 20
LINK_BITS_PER_SECOND, LINK_DELAY_SECONDS = 1e9, 0.0001
SLOWED = 4
LEAST_STEPS, IMAGES_OF_A_RUN = 7, 768
TURNS = 3  # of what is not slowed
PAPER_ONE_DEVICE_BATCH, PAPER_MASTER_BATCH = 256, 512  # Han et al.: DataParallel needs the latter to match one GPU
SLOWED_WITHIN = 0.10  # of the real figure, for a slowed one that stands for it


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


Speeds = dict[str, dict[int, float]]  # images a second, by the name of a case and the batch
MASTER, DISTRIBUTED, ONE = "data_parallel_master", "ring_all_reduce", CASES[0].name


def pairs() -> list[tuple[Case, Case]]:
    """Each case with a master, and the same without one."""
    return [(case, case._replace(name=case.name.replace("master", "distributed"), kind=DISTRIBUTED))
            for case in CASES if case.kind == MASTER]


def first_to_reach(by_batch: dict[int, float], wanted: float) -> int | None:
    """The smallest batch at which a case is as fast as that."""
    return next((batch for batch, speed in by_batch.items() if speed >= wanted), None)


def master_finding(name: str, speeds: Speeds) -> str:
    """A master against one device, batch by batch."""
    slower = [batch for batch in BATCHES if speeds[name][batch] < speeds[ONE][batch]]
    pays_later = bool(slower) and slower[0] == BATCHES[0] and slower[-1] != BATCHES[-1]
    first = BATCHES[0]
    return (f"{name}, against one device: slower in batches of {names(slower)}, {speeds[name][first]:.0f} against "
            f"{speeds[ONE][first]:.0f} images a second in batches of {first}. In the paper a master pays only from "
            f"some batch on: {as_paper(pays_later)}.")


def gains(of: list[tuple[Case, Case]], speeds: Speeds, batches: tuple[int, ...] = BATCHES) -> list[float]:
    """By how many percent the cases are faster without a master, at these batches."""
    return [100 * (speeds[without.name][batch] / speeds[master.name][batch] - 1)
            for master, without in of for batch in batches]


def slowed_finding(speeds: Speeds) -> str:
    """How far slowed workers are from the real ones beside them."""
    worst = 0.0
    for case in CASES:
        real = case.name.replace(" slowed", "")
        if case.slowed > 1 and real in speeds:
            worst = max(worst, *(abs(speeds[case.name][batch] / speeds[real][batch] - 1) for batch in BATCHES))
    return (f"Slowed rows of two workers are within {100 * worst:.0f} % of the real ones (bound: "
            f"{100 * SLOWED_WITHIN:.0f} %), so slowed rows {'stand' if worst <= SLOWED_WITHIN else 'do not stand'} for "
            "real ones. They leave out that four processes share the machine's memory.")


def findings(speeds: Speeds, most: int) -> str:
    """What follows from the figures, beside the paper's."""
    wanted = speeds[ONE][PAPER_ONE_DEVICE_BATCH]
    linked, near = ([pair for pair in pairs() if pair[0].has_links == links] for links in (True, False))
    with_links, small = gains(linked, speeds), gains(linked, speeds, BATCHES[:1])
    at_least = sum(gain > 0 for gain in with_links)
    fastest = max(speeds[ONE].values())
    return comparison([
        Compared(f"{case.name}: batch that matches one device at {PAPER_ONE_DEVICE_BATCH}", PAPER_MASTER_BATCH,
                 first_to_reach(speeds[case.name], wanted), 0) for case, _ in pairs()]) + "\n" + bullets([
                     *(master_finding(case.name, speeds) for case, _ in linked if case.workers == 4),
                     f"With links, training without a master is faster in {at_least} of {len(with_links)} figures: "
                     f"{as_paper(at_least == len(with_links))}. In batches of {BATCHES[0]} it is faster by "
                     f"{span(small, '{:.0f}')} %.",
                     f"On the loopback interface it is faster by {span(gains(near, speeds), '{:.0f}')} %.",
                     f"Every batch ran. One device takes more than {most} images in several passes: it does "
                     f"{speeds[ONE][BATCHES[-1]]:.0f} images a second in batches of {BATCHES[-1]}, "
                     f"{speeds[ONE][BATCHES[-1]] / fastest:.2f} of its best.",
                     slowed_finding(speeds)])


def page(record: dict) -> str:
    """The table, with what agrees with the paper."""
    most = record["largest_batch"]
    speeds = {name: dict(zip(record["batches"], each)) for name, each in record["images_per_second"].items()}
    rows = [[case.name, str(most * case.workers),
             *(f"{speed:.0f}{'*' if batch > most * case.workers else ''}"
               for batch, speed in speeds[case.name].items())] for case in CASES]
    head = ["", "largest batch in one pass", *(f"batch {batch}" for batch in BATCHES)]
    return ("# One device, a master, and no master\n\n"
            + wrap("The head of the script describes the runs. Images a second of all workers, by the median step and, "
                   f"of what is not slowed, the median of {TURNS} runs; a batch is that of all workers. The paper is "
                   "that of Han et al.: PyramidNet on CIFAR-10, one GPU against DataParallel (a master) and "
                   f"DistributedDataParallel. A device with {MEMORY_BYTES >> 20} MiB holds {most} images in one pass, "
                   "and several hold a multiple of that; the runs themselves had no limit of memory. \\* A larger "
                   "batch takes several passes, whose gradients are added up. "
                   "[What may explain the differences](explanations.md#a-master-or-none).")
            + "\n![Images a second by batch](master_or_distributed.svg)\n\n" + source_line(record["source"])
            + table(head, rows) + "\nAgainst the paper:\n\n" + AS_ABOVE + findings(speeds, most))


def draw(record: dict, path: Path):
    """A line for each case."""
    figure, axes = pyplot_for(path).subplots(figsize=(9, 5))
    for case in CASES:
        axes.plot(record["batches"], record["images_per_second"][case.name],
                  linestyle="--" if case.kind == MASTER else "-", label=case.name,
                  marker="s" if case.slowed > 1 else "o")
    axes.set_xscale("log", base=2)
    axes.set_xticks(BATCHES, [str(batch) for batch in BATCHES])
    axes.set_xlabel("batch of all workers")
    axes.set_ylabel("images a second")
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=8)
    save(figure, path)


def measure_all(binary: str, most: int) -> dict[str, list[float]]:
    """Medians of the turns, so that the machine's drift meets all cases alike."""
    runs: dict[Case, dict[int, list[float]]] = {case: {batch: [] for batch in BATCHES} for case in CASES}
    image_seconds = 0.0
    for turn in range(TURNS):
        for case in CASES if turn == 0 else [case for case in CASES if case.slowed == 1]:
            for batch, speeds in runs[case].items():
                speeds.append(images_per_second(binary, case, batch, most, image_seconds, turn))
            image_seconds = image_seconds or 1 / max(speeds[0] for speeds in runs[CASES[0]].values())
    return {case.name: [round(statistics.median(speeds), 2) for speeds in by_batch.values()]
            for case, by_batch in runs.items()}


def measure(binary: str) -> dict:
    """The record."""
    of, most = source(), largest_batch(binary)
    return {"source": of, "largest_batch": most, "batches": list(BATCHES),
            "images_per_second": measure_all(binary, most)}


def main() -> int:
    """Measures, writes and prints."""
    options = make_parser(__doc__).parse_args()
    publish("master_or_distributed", options, lambda: measure(options.binary), page, draw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
