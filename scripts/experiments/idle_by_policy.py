#!/usr/bin/env python3
"""Compares the idle time of four unequal nodes under each planning policy with that of Shin et al.

Simulates the paper's nodes with the step times that its idle times imply
(configs/scenarios/paper_four_nodes.json): ten rounds of 100 local steps with a batch of 4, and no
WAN time. Writes docs/results/idle_by_policy.md, .svg and rows/; the drawing needs python3-matplotlib.
  scripts/experiments/idle_by_policy.py [--binary build/release/farstep] [--output docs/results] [--from ROWS.json]
"""

import sys
from pathlib import Path

from experiment import (REPOSITORY, make_parser, publish, pyplot_for, save, simulate, source, source_line, table,
                        wrap)
from findings import AS_ABOVE, WITHIN, Compared, agrees, as_paper, bullets, comparison, names

SCENARIO = REPOSITORY / "configs/scenarios/paper_four_nodes.json"
# The paper's seconds of idle time, by node; nobody measured the hybrid that it names as future work.
PAPER = {"uniform": (1.1, 0.0, 14.6, 4.9), "batch_by_tflops": (11.9, 0.0, 14.7, 13.8),
         "batch_by_memory": (6.8, 7.2, 0.0, 14.4), "steps_by_tflops": (2.1, 0.0, 8.6, 1.9), "hybrid": None}
BASELINE = "uniform"
SAME_SECONDS = 0.05  # a round: less is no idle time, in a table of tenths of a second


def measure(binary: str) -> dict:
    """The record: by policy each node's seconds in a round."""
    record = {"source": source("Simulated"), "idle_seconds": {}, "compute_seconds": {}}
    for policy in PAPER:
        sites = simulate(binary, SCENARIO, "--policy", policy)[0]["sites"]
        for kind in ("idle_seconds", "compute_seconds"):
            record[kind][policy] = [round(one[kind], 4) for one in sites]
    return record


def change(before: float, after: float) -> str:
    """Less, more, or as much, in a sentence."""
    if abs(after - before) < SAME_SECONDS:
        return "as much"
    return "more" if after > before else "less"


def finding(policy: str, idle: dict[str, list[float]]) -> str:
    """A policy against the baseline, and node by node against the paper."""
    paper, here = PAPER[policy], idle[policy]
    theirs, ours = (change(sum(each[BASELINE]), sum(each[policy])) for each in (PAPER, idle))
    good, bad = [], []
    for number, (expected, found) in enumerate(zip(paper, here), 1):
        if abs(found - expected) < SAME_SECONDS or agrees(expected, found):
            good.append(number)
        else:
            bad.append(f"{number} ({found:.1f} s, the paper {expected:.1f} s)")
    sentences = [f"`{policy}` agrees within {100 * WITHIN:.0f} % at {len(good)} of {len(here)} nodes."]
    if bad:
        sentences.append(f"It does not at node {names(bad)}.")
    if policy != BASELINE:
        sentences.append(f"Against `{BASELINE}` it has {ours} idle time: {as_paper(ours == theirs)}.")
    return " ".join(sentences)


def page(record: dict) -> str:
    """The table, with what agrees and what does not."""
    idle, rows = record["idle_seconds"], []
    shares = {policy: sum(seconds) / (sum(seconds) + sum(record["compute_seconds"][policy]))
              for policy, seconds in idle.items()}
    for policy, seconds in idle.items():
        rows.append([f"`{policy}`", *(f"{one:.1f}" for one in seconds), f"{sum(seconds):.1f}",
                     f"{100 * shares[policy]:.1f} %"])
    least = min(idle, key=lambda policy: sum(idle[policy]))
    measured = [policy for policy in idle if PAPER[policy]]
    return ("# Idle time of four nodes under each policy\n\n"
            + wrap("Simulated, as the head of the script describes: seconds that the nodes wait for each other in a "
                   "round. The step times are those that the paper's baseline implies, so `uniform` has to agree. The "
                   "paper gives one step time a node. So up to 4 sequences on a GPU last as long as one here.") + "\n"
            + source_line(record["source"])
            + table(["policy", *(f"node {number}" for number in range(1, 5)), "total", "share of all time"], rows)
            + "\nTotals against those of Shin et al.:\n\n" + AS_ABOVE
            + comparison([Compared(f"`{policy}`, seconds", sum(PAPER[policy]), sum(idle[policy]), 1)
                          for policy in measured])
            + "\n" + bullets([*(finding(policy, idle) for policy in measured),
                              f"The least idle time has `{least}`: {sum(idle[least]):.1f} s, "
                              f"{100 * shares[least]:.1f} % of all time."
                              + ("" if PAPER[least] else " The paper has no figure for it.")]))


def draw(record: dict, path: Path):
    """Two bars for each policy: simulated, and the paper's."""
    pyplot, idle = pyplot_for(path), record["idle_seconds"]
    figure, axes = pyplot.subplots(figsize=(8, 4))
    places = range(len(idle))
    axes.bar([place - 0.2 for place in places], [sum(seconds) for seconds in idle.values()], 0.4, label="simulated")
    axes.bar([place + 0.2 for place in places], [sum(PAPER[policy] or ()) for policy in idle], 0.4,
             label="Shin et al., measured")
    axes.set_xticks(list(places), list(idle))
    axes.set_ylabel("idle seconds of four nodes, a round")
    axes.grid(True, axis="y", alpha=0.3)
    axes.legend()
    save(figure, path)


def main() -> int:
    """Simulates, writes and prints."""
    options = make_parser(__doc__).parse_args()
    publish("idle_by_policy", options, lambda: measure(options.binary), page, draw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
