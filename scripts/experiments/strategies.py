#!/usr/bin/env python3
"""Compares all strategies over links of 10 Gbit/s to 10 Mbit/s: tokens a second, and bytes a token.

Simulates the four nodes of Shin et al. with the 150M model, sequences of 1,024 and links of 80 ms:
`farstep simulate`, whose model docs/simulation.md describes. Each strategy has the policy hybrid.
Writes docs/results/strategies.md and strategies.svg; the drawing needs python3-matplotlib.
  scripts/experiments/strategies.py [--binary build/release/farstep] [--output docs/results]
"""

import sys
from pathlib import Path

from experiment import PARAMETERS, make_parser, pyplot_for, save, simulate, site, table, tokens_per_second, write

STEP_SECONDS = (0.239, 0.25, 0.104, 0.201)  # of 4 sequences, as the paper's idle times imply
RTT_SECONDS = 0.08
RATES = {"10 Gbit/s": 1e10, "1 Gbit/s": 1e9, "100 Mbit/s": 1e8, "10 Mbit/s": 1e7}
STREAMED = {"codec": {"kind": "int4"}, "fragments": 4, "delay_steps": 23}
# Name, what the scenario says of it, and its base steps.
STRATEGIES = (
    ("low_communication, int4, 4 fragments, delay 23", {"strategy": {"kind": "low_communication"},
                                                        "sync": STREAMED}, 100),
    ("low_communication, fp32 at the round's end", {"strategy": {"kind": "low_communication"}}, 100),
    ("local_sgd", {"strategy": {"kind": "local_sgd"}}, 100),
    ("ring_all_reduce", {"strategy": {"kind": "ring_all_reduce"}}, 100),
    ("ring_all_reduce, direct exchange", {"strategy": {"kind": "ring_all_reduce"},
                                          "sync": {"exchange": "direct"}}, 100),
    ("parameter_server, one server", {"strategy": {"kind": "parameter_server"}}, 100),
    ("parameter_server, four servers", {"strategy": {"kind": "parameter_server"},
                                        "sync": {"servers": ["node1", "node2", "node3", "node4"]}}, 100),
    ("data_parallel_master", {"strategy": {"kind": "data_parallel_master"}}, 100),
)


def figures(binary: str, changes: dict, base_steps: int, rate: float) -> tuple[float, float]:
    """Tokens a second of all sites, and bytes that the busiest site sends for a token of all."""
    scenario = {"name": "strategies", "rounds": 4, "parameters": PARAMETERS, "sequence_length": 1024,
                "plan": {"policy": "hybrid", "base_steps": base_steps, "base_batch": 4},
                "link": {"rtt_seconds": RTT_SECONDS, "bandwidth_bits_per_second": rate},
                "sites": [site(f"node{number}", seconds) for number, seconds in enumerate(STEP_SECONDS, 1)]}
    _, events = simulate(binary, scenario | changes)
    sent: dict[str, int] = {}
    for event in events:
        if event["event"] == "sync":
            sent[event["site"]] = sent.get(event["site"], 0) + event["bytes_sent"]
    tokens = sum(event["tokens"] for event in events if event["event"] == "step")
    return tokens_per_second(events), max(sent.values()) / tokens


def page(rows: list[tuple[str, list[tuple[float, float]]]]) -> str:
    """The figures, with what they are."""
    lines = []
    for name, results in rows:
        kind, comma, details = name.partition(",")
        lines.append([f"`{kind}`{comma}{details}", *(f"{speed:,.0f}" for speed, _ in results), f"{results[0][1]:,.1f}"])
    return ("# Strategies over links of four rates\n\n"
            "`scripts/experiments/strategies.py`: simulated, as its head describes. Tokens a second of the four nodes\n"
            f"together, with links of {1000 * RTT_SECONDS:.0f} ms; and the bytes that the busiest site sends for a\n"
            "token.\n\n"
            + table(["strategy", *RATES, "bytes a token"], lines))


def draw(rows: list[tuple[str, list[tuple[float, float]]]], path: Path):
    """A line for each strategy over the rates."""
    pyplot = pyplot_for(path)
    figure, axes = pyplot.subplots(figsize=(9, 5))
    for number, (name, results) in enumerate(rows):
        style = ("-", "--", ":", "-.")[number % 4]  # some lines lie on others
        axes.plot(list(RATES), [speed for speed, _ in results], marker="o", linestyle=style, linewidth=2, label=name)
    axes.set_yscale("log")
    axes.set_ylabel("tokens a second")
    axes.set_xlabel("a site's link, 80 ms")
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=8)
    save(figure, path)


def main() -> int:
    """Simulates, writes and prints."""
    options = make_parser(__doc__).parse_args()
    rows = [(name, [figures(options.binary, changes, steps, rate) for rate in RATES.values()])
            for name, changes, steps in STRATEGIES]
    write(options.output / "strategies.md", page(rows))
    draw(rows, options.output / "strategies.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
