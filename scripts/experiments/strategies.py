#!/usr/bin/env python3
"""Compares all strategies over links of 10 Gbit/s to 10 Mbit/s: tokens a second, bytes a token, and real runs.

Simulates the four nodes of Shin et al. with the 150M model, sequences of 1,024 and links of 80 ms:
`farstep simulate`, whose model docs/simulation.md describes. Each strategy has the policy hybrid. Then
every strategy trains for real, beside the simulation of the same run: a model of 0.3M parameters with
sequences of 128 at four sites of a wan_lab, whose devices emulate the nodes' step times. That part needs
root, the demo corpus and seven minutes; --simulated-only keeps the real runs that are recorded. Writes
docs/results/strategies.md, .svg and rows/; the drawing needs python3-matplotlib.
  scripts/experiments/strategies.py [--binary build/release/farstep] [--output docs/results] [--from ROWS.json]
      [--simulated-only]
"""

import argparse
import json
import sys
from pathlib import Path

import real_strategies
from experiment import (PARAMETERS, make_parser, publish, pyplot_for, save, simulate, site, source, source_line, table,
                        tokens_per_second, wrap)
from findings import bullets, span

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


def findings(rows: list[dict]) -> str:
    """Who is fastest at each rate, and by how much before the fastest that takes every step together."""
    together = [row for row in rows if not real_strategies.is_local(row)]
    sentences = []
    for place, rate in enumerate(RATES):
        first, other = (max(part, key=lambda row: row["tokens_per_second"][place]) for part in (rows, together))
        ratio = first["tokens_per_second"][place] / other["tokens_per_second"][place]
        sentences.append(f"At {rate} {title_of(first['strategy'])} is the fastest, {ratio:,.1f} times as fast as the "
                         f"best that takes every step together, {title_of(other['strategy'])}.")
    shares = [row["tokens_per_second"][-1] / row["tokens_per_second"][0] for row in rows]
    sentences.append(f"At {list(RATES)[-1]} the strategies have {span(shares, '{:.4f}')} of their speed at "
                     f"{list(RATES)[0]}.")
    return bullets(sentences)


def page(record: dict) -> str:
    """The figures, with what they are."""
    rows = record["simulated"]["rows"]
    lines = [[title_of(row["strategy"]), *(f"{speed:,.0f}" for speed in row["tokens_per_second"]),
              f"{row['bytes_a_token']:,.1f}"] for row in rows]
    text = ("# Strategies over links of four rates\n\n"
            + wrap("Simulated, as the head of the script describes. Tokens a second of the four nodes together, with "
                   f"links of {1000 * RTT_SECONDS:.0f} ms; and the bytes that the busiest site sends for a token.")
            + "\n" + source_line(record["simulated"]["source"]) + table(["strategy", *RATES, "bytes a token"], lines)
            + "\n" + findings(rows))
    return text + (real_strategies.page(record["real"]) if record["real"] else "")


def draw(record: dict, path: Path):
    """A line for each strategy over the rates, and its real runs against their simulation."""
    pyplot = pyplot_for(path)
    figure, (axes, beside) = pyplot.subplots(1, 2, figsize=(14, 5.5))
    real = {row["strategy"]: row for row in record["real"]["rows"]} if record["real"] else {}
    for number, row in enumerate(record["simulated"]["rows"]):
        style, name = ("-", "--", ":", "-.")[number % 4], row["strategy"]  # some lines lie on others
        axes.plot(list(RATES), row["tokens_per_second"], marker="o", linestyle=style, linewidth=2, label=name)
        if name in real:
            pair = (list(real[name][f"{kind}_tokens_per_second"].values()) for kind in ("simulated", "measured"))
            beside.plot(*pair, marker="os^vDPX*"[number], linestyle="", label=name)
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


def measure(options: argparse.Namespace) -> dict:
    """The record: simulated rows, and real ones, measured or kept."""
    of, rows = source("Simulated"), []
    for name, changes, steps in STRATEGIES:
        pairs = [figures(options.binary, changes, steps, rate) for rate in RATES.values()]
        rows.append({"strategy": name, "tokens_per_second": [round(speed, 3) for speed, _ in pairs],
                     "bytes_a_token": round(pairs[0][1], 2)})
    record: dict = {"simulated": {"source": of, "rows": rows}, "real": None}
    recorded = options.output / "rows" / "strategies.json"
    if not options.simulated_only:
        kinds = tuple((name, changes) for name, changes, _ in STRATEGIES)
        record["real"] = real_strategies.measure(options.binary, kinds, STEP_SECONDS, RTT_SECONDS)
    elif recorded.exists():
        record["real"] = json.loads(recorded.read_text(encoding="utf-8"))["real"]
    return record


def main() -> int:
    """Simulates, trains, writes and prints."""
    parser = make_parser(__doc__)
    parser.add_argument("--simulated-only", action="store_true", help="keep the real runs that are recorded")
    options = parser.parse_args()
    publish("strategies", options, lambda: measure(options), page, draw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
