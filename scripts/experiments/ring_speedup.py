#!/usr/bin/env python3
"""Tells how ring all-reduce scales over 1 to 8 workers, and what the placement in a shared cluster does to it.

Simulates equal workers that train the 150M model with 64 sequences a worker in a step of 2 s, over
links of 10 Gbit/s to 100 Mbit/s. In the cluster, two jobs of four workers share four machines with an
uplink each. All exchanges are rings, in fp32. Writes docs/results/ring_speedup.md and .svg; the
drawing needs python3-matplotlib.
  scripts/experiments/ring_speedup.py [--binary build/release/farstep] [--output docs/results]
"""

import sys
from pathlib import Path

from experiment import PARAMETERS, make_parser, pyplot_for, save, simulate, site, table, tokens_per_second, write

WORKERS = (1, 2, 4, 8)
STRATEGIES = ("ring_all_reduce", "low_communication")
RATES = {"10 Gbit/s": 1e10, "1 Gbit/s": 1e9, "100 Mbit/s": 1e8}
LAN_RTT_SECONDS = 0.0002
INSIDE_BITS_PER_SECOND = 200e9  # between two workers of one machine
BATCH, STEP_SECONDS = 64, 2.0


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


def page(scaling: dict, placements: list[tuple[str, str, list[float]]]) -> str:
    """Both tables, with what they say."""
    scaling_rows = [[f"`{strategy}`", rate, *(f"{value:.2f}" for value in values)]
                    for (strategy, rate), values in scaling.items()]
    placement_rows = [[f"`{strategy}`", place, *(f"{value:.2f}" for value in values)]
                      for strategy, place, values in placements]
    return f"""# Speed-up of ring all-reduce, and placement in a shared cluster

`scripts/experiments/ring_speedup.py`: simulated, as its head describes. Tokens a second of all workers, against
those of one.

{table(["strategy", "link of a worker", "1 worker", *(f"{count} workers" for count in WORKERS[1:])], scaling_rows)}
Paper E reports image classification that scales linearly over servers. That needs a link on which the exchange ends
within backward: for the 150M model and steps of 2 s that is 10 Gbit/s, not 1 Gbit/s.

Two jobs of four workers share four machines, each with one uplink. *Packed*: each job has two machines for itself,
with two workers in each; the ring leaves a machine once. *Spread*: each job has one worker in every machine, and the
two jobs share each uplink in equal parts.

{table(["strategy", "placement", *RATES], placement_rows)}
Packing matters where the exchange is exposed. From 1 Gbit/s down it doubles the ring's speed, because the job has the
whole uplink.
Low communication is exposed once in 50 steps, so it gains little from 1 Gbit/s on.
"""


def draw(scaling: dict, path: Path):
    """A line for each strategy and rate."""
    pyplot = pyplot_for(path)
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for number, ((strategy, rate), values) in enumerate(scaling.items()):
        axes.plot(WORKERS, values, marker="o", linestyle=("-", "--", ":")[number % 3], label=f"{strategy}, {rate}")
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
    scaling = {(strategy, name): speedups(options.binary, strategy, rate)
               for strategy in STRATEGIES for name, rate in RATES.items()}
    placements = [(strategy, name, [placed(options.binary, strategy, machines, rate * share)
                                    for rate in RATES.values()])
                  for strategy in STRATEGIES
                  for name, machines, share in (("packed", (1, 1, 2, 2), 1), ("spread", (1, 2, 3, 4), 0.5))]
    write(options.output / "ring_speedup.md", page(scaling, placements))
    draw(scaling, options.output / "ring_speedup.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
