#!/usr/bin/env python3
"""Compares all strategies over links of 10 Gbit/s to 10 Mbit/s: tokens a second, and bytes a token.

Simulates the four nodes of Shin et al. with the 150M model, sequences of 1,024 and links of 80 ms:
`farstep simulate`, whose model docs/simulation.md describes. Each strategy has the policy hybrid.
Writes docs/results/strategies.md and strategies.svg; the drawing needs python3-matplotlib.
  scripts/experiments/strategies.py [--binary build/release/farstep] [--output docs/results]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
STEP_SECONDS = (0.239, 0.25, 0.104, 0.201)  # of 4 sequences, as the paper's idle times imply
PARAMETERS, SEQUENCE_LENGTH = 214_983_680, 1024
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


def scenario(changes: dict, base_steps: int, rate: float) -> dict:
    """The four nodes over links of this rate."""
    sites = [{"profile": {"site": f"node{number}", "links": [], "devices": [
        {"name": "GPU", "fp16_tflops": None, "bf16_tflops": None, "memory_bytes": None, "max_micro_batch": None,
         "step_seconds": [{"micro_batch": size, "seconds": seconds * size / 4} for size in (1, 4, 16)]}]}}
        for number, seconds in enumerate(STEP_SECONDS, 1)]
    return {"name": "strategies", "rounds": 4, "parameters": PARAMETERS, "sequence_length": SEQUENCE_LENGTH,
            "plan": {"policy": "hybrid", "base_steps": base_steps, "base_batch": 4},
            "link": {"rtt_seconds": RTT_SECONDS, "bandwidth_bits_per_second": rate}, "sites": sites} | changes


def simulate(binary: str, content: dict) -> tuple[float, float]:
    """Tokens a second of all sites, and bytes that the busiest site sends for a token of all."""
    with tempfile.TemporaryDirectory(prefix="farstep-strategies-") as temporary:
        folder = Path(temporary)
        (folder / "scenario.json").write_text(json.dumps(content), encoding="utf-8")
        result = subprocess.run([binary, "simulate", "--scenario", folder / "scenario.json", "--out",
                                 folder / "events"], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(result.stderr)
        tokens, sent, end, begin = 0, [], 0.0, float("inf")
        for path in sorted((folder / "events").glob("*/events.jsonl")):
            events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            tokens += sum(event["tokens"] for event in events if event["event"] == "step")
            sent.append(sum(event["bytes_sent"] for event in events if event["event"] == "sync"))
            begin = min(begin, events[0]["time"])
            end = max(end, events[-1]["time"])
        return tokens / (end - begin), max(sent) / tokens


def table(rows: list[tuple[str, list[tuple[float, float]]]]) -> str:
    """The figures in Markdown."""
    lines = ["# Strategies over links of four rates", "",
             "`scripts/experiments/strategies.py`: simulated, as its head describes. Tokens a second of the four nodes",
             f"together, with links of {1000 * RTT_SECONDS:.0f} ms; and the bytes that the busiest site sends for a token.", "",
             "| strategy | " + " | ".join(RATES) + " | bytes a token |", "|---" * (len(RATES) + 2) + "|"]
    for name, figures in rows:
        lines.append(f"| `{name.split(',')[0]}`{name[len(name.split(',')[0]):]} | "
                     + " | ".join(f"{speed:,.0f}" for speed, _ in figures) + f" | {figures[0][1]:,.1f} |")
    return "\n".join(lines) + "\n"


def draw(rows: list[tuple[str, list[tuple[float, float]]]], path: Path):
    """A line for each strategy over the rates."""
    try:
        import matplotlib
    except ImportError:
        sys.exit(f"{path} is not drawn: install python3-matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "farstep"  # the same figures give the same file
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(9, 5))
    for number, (name, figures) in enumerate(rows):
        style = ("-", "--", ":", "-.")[number % 4]  # some lines lie on others
        axes.plot(list(RATES), [speed for speed, _ in figures], marker="o", linestyle=style, linewidth=2, label=name)
    axes.set_yscale("log")
    axes.set_ylabel("tokens a second")
    axes.set_xlabel("a site's link, 80 ms")
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Simulates, writes and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=str(REPOSITORY / "build/release/farstep"))
    parser.add_argument("--output", type=Path, default=REPOSITORY / "docs" / "results")
    options = parser.parse_args()
    rows = [(name, [simulate(options.binary, scenario(changes, steps, rate)) for rate in RATES.values()])
            for name, changes, steps in STRATEGIES]
    options.output.mkdir(parents=True, exist_ok=True)
    text = table(rows)
    (options.output / "strategies.md").write_text(text, encoding="utf-8")
    print(text)
    draw(rows, options.output / "strategies.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
