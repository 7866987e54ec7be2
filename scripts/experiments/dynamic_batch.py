#!/usr/bin/env python3
"""Compares batches that grow by the gradient noise scale with fixed ones: loss at equal tokens, time and steps.

Trains a model of 0.4M parameters at one site with one thread, by plain AdamW, on the demo corpus. The learning rate is
constant after a warm-up of 40 steps, so that a run can be read at any number of tokens. On one thread a sequence takes
as long in any batch, so equal tokens are equal time. Where larger batches take no longer, as on more devices, equal
steps are. Writes docs/results/dynamic_batch.md and dynamic_batch.svg; the drawing needs python3-matplotlib.
  scripts/experiments/dynamic_batch.py [--binary build/release/farstep] [--output docs/results]
"""

import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from experiment import REPOSITORY, make_parser, pyplot_for, save, write

LENGTH, FIRST_BATCH, MOST_BATCH, RATE = 128, 4, 32, 0.002
DISCUSSED = "[Measurements](../results.md#the-gradient-noise-scale) says what follows."
TOKENS, STEPS = 150_000, 38  # at which losses are compared; every run has as many
WARMUP_STEPS = 40
GROWING = ("growing, none", "growing, sqrt")
FIXED = {"4": (4, "none"), "8, none": (8, "none"), "16, none": (16, "none"), "8, sqrt": (8, "sqrt"),
         "16, sqrt": (16, "sqrt"), "32, sqrt": (32, "sqrt")}


def run_file(name: str, seed: int) -> dict:
    """The run file of one kind of batch. Rounds of fixed batches have 96 sequences each."""
    batch, rule = FIXED.get(name, (FIRST_BATCH, "none"))
    steps = 96 // batch if name in FIXED else 8
    rounds = math.ceil(1.05 * TOKENS / LENGTH / (steps * batch))
    if name in GROWING:
        rounds = 24  # enough tokens, once the batch has grown
    plan = {"base_steps": steps, "base_batch": batch, "micro_batch": 2}
    if name in GROWING:
        plan["batch_growth"] = {"most_batch": MOST_BATCH, "learning_rate": name.split(", ")[1]}
    rate = RATE * (math.sqrt(batch / FIRST_BATCH) if rule == "sqrt" else 1)
    return {"name": "dynamic_batch", "seed": seed, "sites": [{"name": "site"}],
            "model": {"preset": "tiny", "vocabulary": 1024, "hidden": 96, "intermediate": 256, "layers": 2,
                      "heads": 4, "kv_heads": 2},
            "data": {"sequence_length": LENGTH}, "outer": {"rounds": rounds, "learning_rate": 1, "momentum": 0},
            "inner": {"peak_learning_rate": rate, "warmup_fraction": min(0.9, WARMUP_STEPS / (steps * rounds)),
                      "final_fraction": 1, "compute": "bf16"},
            "plan": plan, "evaluate": {"every_rounds": 1, "windows": 32}, "checkpoint": {"every_rounds": 10000}}


def train(binary: str, data: Path, folder: Path, run: dict) -> list[dict]:
    """The events of a run; not trained again if the folder has them."""
    folder.mkdir(exist_ok=True)
    path = folder / "out/site/events.jsonl"
    events = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    if events and events[-1].get("outcome") == "done":
        return events
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    site = {"name": "site", "run": "run.json", "coordinator": {"endpoint": "tcp://127.0.0.1:7453", "host": True},
            "network": {"address": "127.0.0.1"}, "devices": [{"kind": "cpu", "threads": 1}], "data": str(data),
            "cpu": {"products": "first"}, "output": "out"}
    (folder / "site.json").write_text(json.dumps(site), encoding="utf-8")
    shutil.rmtree(folder / "out", ignore_errors=True)
    result = subprocess.run([binary, "train", "--config", folder / "site.json"], capture_output=True, text=True,
                            check=False, timeout=3600)
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class Curve:
    """What a run's validations have seen: tokens and steps so far, and loss; its steps' times and its rounds."""

    def __init__(self, events: list[dict]):
        self.points: list[dict] = []
        self.step_seconds: dict[int, list[float]] = {}
        self.rounds = [event for event in events if event["event"] == "round"]
        tokens = steps = 0
        for event in events:
            if event["event"] == "step":
                self.step_seconds.setdefault(event["tokens"] // LENGTH, []).append(event["seconds"])
                tokens += event["tokens"]
                steps += 1
            elif event["event"] == "evaluation":
                self.points.append({"tokens": tokens, "steps": steps, "loss": event["loss_sum"] / event["tokens"]})

    def at(self, axis: str, value: float, wanted: str) -> float:
        """The figure `wanted` where `axis` reaches `value`, on the line between two validations."""
        for before, after in zip(self.points, self.points[1:]):
            low, high = before[axis], after[axis]
            if min(low, high) <= value <= max(low, high) and low != high:
                return before[wanted] + (value - low) / (high - low) * (after[wanted] - before[wanted])
        return math.nan


def spread(values: list[float], digits: int) -> str:
    """Mean and half the range of the seeds."""
    if any(math.isnan(value) for value in values):
        return "not reached"
    return f"{statistics.mean(values):,.{digits}f} ± {(max(values) - min(values)) / 2:,.{digits}f}"


def best_by_batch(curves: dict[str, list[Curve]], figure) -> dict[int, float]:
    """Of each fixed batch the least mean of this figure of a curve, over its learning rates."""
    best: dict[int, float] = {}
    for name, (batch, _) in FIXED.items():
        best[batch] = min(best.get(batch, math.inf), statistics.mean(figure(curve) for curve in curves[name]))
    return best


def critical_batch(curves: dict[str, list[Curve]], target: float) -> float:
    """E_min / S_min in sequences: E = E_min + S_min B, the paper's law, through the best runs to a loss."""
    sequences = best_by_batch(curves, lambda curve: curve.at("loss", target, "tokens") / LENGTH)
    line = statistics.linear_regression(list(sequences), list(sequences.values()))
    return line.intercept / line.slope


def sequence_times(curves: dict[str, list[Curve]]) -> str:
    """The shortest time of a sequence, by batch, of the batches that every seed has."""
    times = []
    for batch in sorted({batch for batch, _ in FIXED.values()}):
        seconds = [one for seeds in curves.values() for curve in seeds for one in curve.step_seconds.get(batch, [])]
        times.append(f"{1000 * min(seconds) / batch:.2f} ms in steps of {batch}")
    return ", ".join(times)


def tables(curves: dict[str, list[Curve]], target: float) -> str:
    """The figures in Markdown."""
    num_seeds = len(curves[GROWING[0]])
    lines = ["# Batches that grow by the noise scale, and fixed ones", "",
             "`scripts/experiments/dynamic_batch.py`: its head describes the runs. Each figure is the mean of",
             f"{num_seeds} seeds and half their range. {DISCUSSED}", "",
             "![Loss by tokens and by steps](dynamic_batch.svg)", "", f"A sequence takes {sequence_times(curves)}.", "",
             f"| batch, learning rate | loss at {TOKENS:,} tokens | loss after {STEPS} steps "
             f"| steps to loss {target:.2f} | thousand tokens to it |", "|---" * 5 + "|"]
    for name, seeds in curves.items():
        lines.append(f"| {name} | " + " | ".join((
            spread([curve.at("tokens", TOKENS, "loss") for curve in seeds], 3),
            spread([curve.at("steps", STEPS, "loss") for curve in seeds], 3),
            spread([curve.at("loss", target, "steps") for curve in seeds], 0),
            spread([curve.at("loss", target, "tokens") / 1000 for curve in seeds], 0))) + " |")
    lines += ["", "By the fixed batches to that loss, the critical batch (E_min / S_min, with the better learning rate",
              f"of each batch) is {critical_batch(curves, target):.0f} sequences.", "",
              "| growing | tokens at which the batch reached 8, 16, 32 (seed 1) | noise scale by 4 rounds (seed 1) |",
              "|---|---|---|"]
    for name in GROWING:
        rounds = curves[name][0].rounds
        reached = []
        for batch in (8, 16, 32):
            first = next((i for i, one in enumerate(rounds) if one["batch"] >= batch), None)
            reached.append("never" if first is None else f"{sum(one['tokens'] for one in rounds[:first]):,}")
        scales = ["-" if one["noise_scale"] is None else f"{one['noise_scale']:.0f}" for one in rounds[::4]]
        lines.append(f"| {name} | {', '.join(reached)} | {', '.join(scales)} |")
    return "\n".join(lines) + "\n"


def fixed_noise(curves: dict[str, list[Curve]]) -> str:
    """The noise scale in the two halves of each run, which should not depend on the batch that measures it."""
    lines = ["| batch, learning rate | noise scale, first half of the rounds | second half |", "|---|---|---|"]
    for name, seeds in curves.items():
        halves = []
        for half in (0, 1):
            scales = []
            for curve in seeds:
                middle = len(curve.rounds) // 2
                part = curve.rounds[half * middle:(half + 1) * middle or None]
                part = [one for one in part if one["gradient_variance"] is not None]
                variance = sum(one["tokens"] * one["gradient_variance"] for one in part)
                squared_norm = sum(one["tokens"] * one["gradient_squared_norm"] for one in part)
                scales.append(variance / squared_norm if squared_norm > 0 else math.nan)
            halves.append(spread(scales, 1).replace("not reached", "lost in noise"))
        lines.append(f"| {name} | {' | '.join(halves)} |")
    return "\n".join(lines) + "\n"


def draw(curves: dict[str, list[Curve]], path: Path):
    """Loss over tokens and over steps, the mean of the seeds."""
    figure, both = pyplot_for(path).subplots(1, 2, figsize=(11, 5), sharey=True)
    for axes, axis in zip(both, ("tokens", "steps")):
        for name, seeds in curves.items():
            least = min(curve.points[-1][axis] for curve in seeds)
            values = [least * part / 60 for part in range(1, 61)]
            losses = [statistics.mean(curve.at(axis, value, "loss") for curve in seeds) for value in values]
            axes.plot(values, losses, linewidth=2.4 if name in GROWING else 1,
                      linestyle="--" if name.endswith("sqrt") else "-", label=name)
        axes.set_xscale("log")
        axes.set_xlabel(axis)
        axes.grid(True, alpha=0.3)
    both[0].set_ylabel("validation loss")
    both[0].legend(fontsize=8)
    save(figure, path)


def all_curves(binary: str, folder: Path, num_seeds: int) -> dict[str, list[Curve]]:
    """The runs of all kinds, seed after seed."""
    folder.mkdir(exist_ok=True)
    if not (folder / "data/dataset.json").exists():
        subprocess.run([binary, "tokenize", REPOSITORY / ".deps/corpus/austen", "--output", folder / "data",
                        "--train-vocabulary", "1024"], check=True, capture_output=True, timeout=600)
    curves: dict[str, list[Curve]] = {}
    for seed in range(1, num_seeds + 1):
        for name in (*GROWING, *FIXED):
            own = folder / f"{name.replace(', ', '_')}_{seed}"
            curves.setdefault(name, []).append(Curve(train(binary, folder / "data", own, run_file(name, seed))))
            print(name, seed, curves[name][-1].points[-1], flush=True)
    return curves


def main() -> int:
    """Trains, writes and prints."""
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=Path, help="folder of the runs, whose finished ones are not repeated")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="farstep-batch-") as temporary:
        curves = all_curves(options.binary, options.runs or Path(temporary), options.seeds)
    # So that each batch reaches the target with one of its learning rates.
    target = max(best_by_batch(curves, lambda curve: curve.at("tokens", TOKENS, "loss")).values()) + 0.05
    text = tables(curves, target) + "\n" + fixed_noise(curves)
    write(options.output / "dynamic_batch.md", text)
    draw(curves, options.output / "dynamic_batch.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
