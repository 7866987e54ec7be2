#!/usr/bin/env python3
"""Tells how ring all-reduce scales over 1 to 8 workers, and what the placement in a shared cluster does to it.

Simulates equal workers that train the 150M model with 64 sequences a worker in a step of 2 s, over
links of 10 Gbit/s to 100 Mbit/s. In the cluster, two jobs of four workers share four machines with an
uplink each. Packed, each job has two machines for itself, with two workers in each; the ring leaves a
machine once. Spread, each job has one worker in every machine, and the jobs share each uplink in equal
parts. All exchanges are rings, in fp32. Writes docs/results/ring_speedup.md, .svg and rows/; the
drawing needs python3-matplotlib.
  scripts/experiments/ring_speedup.py [--binary build/release/farstep] [--output docs/results] [--from ROWS.json]
"""

import sys
from pathlib import Path

from experiment import (PARAMETERS, make_parser, publish, pyplot_for, save, simulate, site, source, source_line, table,
                        tokens_per_second, wrap)
from findings import AS_ABOVE, WITHIN, Compared, bullets, comparison, names

WORKERS = (1, 2, 4, 8)
STRATEGIES = ("ring_all_reduce", "low_communication")
RATES = {"10 Gbit/s": 1e10, "1 Gbit/s": 1e9, "100 Mbit/s": 1e8}
LAN_RTT_SECONDS = 0.0002
INSIDE_BITS_PER_SECOND = 200e9  # between two workers of one machine
BATCH, STEP_SECONDS = 64, 2.0
# Name, the machine of each of the four workers, and the job's part of an uplink.
PLACEMENTS = (("packed", (1, 1, 2, 2), 1.0), ("spread", (1, 2, 3, 4), 0.5))


def speed(binary: str, strategy: str, sites: list[dict], **links: object) -> float:
    """Tokens a second of all workers."""
    scenario = {"name": "ring", "rounds": 2, "parameters": PARAMETERS, "sequence_length": 1024,
                "strategy": {"kind": strategy}, "sync": {"exchange": "ring"}, "sites": sites,
                "plan": {"policy": "uniform", "base_steps": 50, "base_batch": BATCH}}
    return tokens_per_second(simulate(binary, scenario | links)[1])


def worker(number: int, region: str = "") -> dict:
    """One of the equal workers."""
    return site(f"worker{number}", STEP_SECONDS * 4 / BATCH, region=region)


def speedups(binary: str, strategy: str, rate: float) -> list[float]:
    """Against one worker, for each number of workers."""
    link = {"rtt_seconds": LAN_RTT_SECONDS, "bandwidth_bits_per_second": rate}
    speeds = [speed(binary, strategy, [worker(number) for number in range(1, count + 1)], link=link)
              for count in WORKERS]
    return [value / speeds[0] for value in speeds]


def placed(binary: str, strategy: str, machines: tuple[int, ...], rate: float) -> float:
    """Speed-up of four workers on these machines; `rate` is what the job has of each machine's uplink."""
    names = [f"machine{machine}" for machine in sorted(set(machines))]
    ways = [{"from": one, "to": other, "rtt_seconds": LAN_RTT_SECONDS,
             "bandwidth_bits_per_second": INSIDE_BITS_PER_SECOND if one == other else rate}
            for place, one in enumerate(names) for other in names[place:]]
    sites = [worker(number, f"machine{machine}") for number, machine in enumerate(machines, 1)]
    alone = speed(binary, strategy, [worker(1)])
    return speed(binary, strategy, sites, regions=ways) / alone


def measure(binary: str) -> dict:
    """The record."""
    record = {"source": source("Simulated"), "scaling": [], "placement": []}
    for strategy in STRATEGIES:
        for name, rate in RATES.items():
            record["scaling"].append({"strategy": strategy, "link": name,
                                      "speed_ups": [round(one, 4) for one in speedups(binary, strategy, rate)]})
        for name, machines, share in PLACEMENTS:
            ups = [round(placed(binary, strategy, machines, rate * share), 4) for rate in RATES.values()]
            record["placement"].append({"strategy": strategy, "placement": name, "speed_ups": ups})
    return record


def findings(record: dict) -> str:
    """Where it scales, and what a placement is worth."""
    linear = {strategy: [row["link"] for row in record["scaling"] if row["strategy"] == strategy
                         and row["speed_ups"][-1] >= (1 - WITHIN) * WORKERS[-1]] for strategy in STRATEGIES}
    places = {(row["strategy"], row["placement"]): row["speed_ups"] for row in record["placement"]}
    sentences = [f"`{strategy}` scales linearly within {100 * WITHIN:.0f} % at these rates: {names(links)}."
                 for strategy, links in linear.items()]
    for strategy in STRATEGIES:
        ratios = [packed / spread for packed, spread in zip(places[strategy, "packed"], places[strategy, "spread"])]
        sentences.append(f"`{strategy}` is faster when packed by the factors "
                         + names([f"{ratio:.2f} at {rate}" for ratio, rate in zip(ratios, RATES)]) + ".")
    return bullets(sentences)


def page(record: dict) -> str:
    """Both tables, with what they say."""
    scaling, placement = ([[f"`{row['strategy']}`", row[name], *(f"{value:.2f}" for value in row["speed_ups"])]
                           for row in record[part]]
                          for part, name in (("scaling", "link"), ("placement", "placement")))
    most = WORKERS[-1]
    return ("# Speed-up of ring all-reduce, and placement in a shared cluster\n\n"
            + wrap("Simulated, as the head of the script describes: the 150M model, steps of "
                   f"{STEP_SECONDS:.0f} s. Tokens a second of all workers, against those of one.") + "\n"
            + source_line(record["source"])
            + table(["strategy", "link of a worker", *(f"{count} worker{'s' * (count > 1)}" for count in WORKERS)],
                    scaling)
            + f"\nPaper E reports image classification that scales linearly over servers: {most} times with {most}.\n\n"
            + AS_ABOVE + comparison([Compared(f"`{row['strategy']}`, {row['link']}, {most} workers", most,
                                              row["speed_ups"][-1]) for row in record["scaling"]])
            + "\nTwo jobs of four workers share four machines, each with one uplink:\n\n" + AS_ABOVE
            + table(["strategy", "placement", *RATES], placement) + "\n" + findings(record))


def draw(record: dict, path: Path):
    """A line for each strategy and rate."""
    pyplot = pyplot_for(path)
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for number, row in enumerate(record["scaling"]):
        axes.plot(WORKERS, row["speed_ups"], marker="o", linestyle=("-", "--", ":")[number % 3],
                  label=f"{row['strategy']}, {row['link']}")
    axes.plot(WORKERS, WORKERS, color="gray", linewidth=0.8, label="linear")
    axes.set_xlabel("workers")
    axes.set_xticks(WORKERS)
    axes.set_ylabel("speed-up")
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=8)
    save(figure, path)


def main() -> int:
    """Simulates, writes and prints."""
    options = make_parser(__doc__).parse_args()
    publish("ring_speedup", options, lambda: measure(options.binary), page, draw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
