#!/usr/bin/env python3
"""Compares all strategies over links of 10 Gbit/s to 10 Mbit/s: tokens a second, bytes a token, and real runs.

Simulates the four nodes of Shin et al. with the 150M model, sequences of 1,024 and links of 80 ms:
`farstep simulate`, whose model docs/simulation.md describes. Each strategy has the policy hybrid. Then
every strategy trains for real, beside the simulation of the same run: a model of 0.3M parameters with
sequences of 128 at four sites of a wan_lab, whose devices emulate the nodes' step times. That part needs
root, the demo corpus and seven minutes; --simulated-only leaves it out. Writes docs/results/strategies.md
and strategies.svg; the drawing needs python3-matplotlib.
  scripts/experiments/strategies.py [--binary build/release/farstep] [--output docs/results] [--simulated-only]
"""

import sys
from pathlib import Path

import real_strategies
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


def title_of(name: str) -> str:
    """The strategy's name in a table, its kind as code."""
    kind, comma, details = name.partition(",")
    return f"`{kind}`{comma}{details}"


def page(rows: list[tuple[str, list[tuple[float, float]]]]) -> str:
    """The figures, with what they are."""
    lines = [[title_of(name), *(f"{speed:,.0f}" for speed, _ in results), f"{results[0][1]:,.1f}"]
             for name, results in rows]
    return ("# Strategies over links of four rates\n\n"
            "`scripts/experiments/strategies.py`: simulated, as its head describes. Tokens a second of the four nodes\n"
            f"together, with links of {1000 * RTT_SECONDS:.0f} ms; and the bytes that the busiest site sends for a\n"
            "token.\n\n"
            + table(["strategy", *RATES, "bytes a token"], lines))


def draw(rows: list[tuple[str, list[tuple[float, float]]]], real: real_strategies.Results, path: Path):
    """A line for each strategy over the rates, and its real runs against their simulation."""
    pyplot = pyplot_for(path)
    figure, (axes, beside) = pyplot.subplots(1, 2, figsize=(14, 5.5))
    for number, (name, results) in enumerate(rows):
        style = ("-", "--", ":", "-.")[number % 4]  # some lines lie on others
        axes.plot(list(RATES), [speed for speed, _ in results], marker="o", linestyle=style, linewidth=2, label=name)
        pairs = [real[name, rate] for rate in real_strategies.RATES if (name, rate) in real]
        beside.plot([simulated.tokens_per_second for simulated, _ in pairs],
                    [measured.tokens_per_second for _, measured in pairs],
                    marker="os^vDPX*"[number], linestyle="", label=name)
    axes.set_ylabel("tokens a second, simulated, 150M model")
    axes.set_xlabel("a site's link, 80 ms")
    axes.legend(fontsize=8)
    beside.axline((1000, 1000), (2000, 2000), color="gray", linewidth=0.8)
    beside.set_xscale("log")
    beside.set_xlabel("tokens a second, simulated, 0.3M model at 100 and 10 Mbit/s")
    beside.set_ylabel("measured in the lab")
    for each in (axes, beside):
        each.set_yscale("log")
        each.grid(True, alpha=0.3)
    save(figure, path)


def main() -> int:
    """Simulates, trains, writes and prints."""
    parser = make_parser(__doc__)
    parser.add_argument("--simulated-only", action="store_true", help="leave out the real runs")
    options = parser.parse_args()
    rows = [(name, [figures(options.binary, changes, steps, rate) for rate in RATES.values()])
            for name, changes, steps in STRATEGIES]
    text, real = page(rows), {}
    if not options.simulated_only:
        kinds = tuple((name, changes) for name, changes, _ in STRATEGIES)
        real = real_strategies.measure(options.binary, kinds, STEP_SECONDS, RTT_SECONDS)
        text += real_strategies.page(real, title_of)
    write(options.output / "strategies.md", text)
    draw(rows, real, options.output / "strategies.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
