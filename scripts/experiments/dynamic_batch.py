#!/usr/bin/env python3
"""Compares batches that grow by the gradient noise scale with fixed ones: loss at equal tokens, time and steps.

Trains a model of 0.4M parameters at one site with one thread, by plain AdamW, on the demo corpus. The learning rate is
constant after a warm-up of 40 steps, so that a run can be read at any number of tokens. On one thread a sequence takes
as long in any batch, so equal tokens are equal time. Where larger batches take no longer, as on more devices, equal
steps are. Writes docs/results/dynamic_batch.md, .svg and rows/; the drawing needs python3-matplotlib.
  scripts/experiments/dynamic_batch.py [--binary build/release/farstep] [--output docs/results] [--from ROWS.json]
"""

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from experiment import REPOSITORY, make_parser, publish, pyplot_for, save, source, source_line, table, wrap
from findings import AS_ABOVE, bullets, span

LENGTH, FIRST_BATCH, MOST_BATCH, RATE = 128, 4, 32, 0.002
TOKENS, STEPS = 150_000, 38  # at which losses are compared; every run has as many
WARMUP_STEPS = 40
SIZES = (8, 16, 32)  # to which a batch may grow
AXES, CURVE_POINTS = ("tokens", "steps"), 60
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


def spread(values: list[float], digits: int) -> list[float] | None:
    """Mean and half the range of the seeds; None if one of them has no such figure."""
    if any(math.isnan(value) for value in values):
        return None
    return [round(statistics.mean(values), digits), round((max(values) - min(values)) / 2, digits)]


def best_by_batch(figures: dict[str, float]) -> dict[int, float]:
    """Of each fixed batch the least of these figures by kind, over its learning rates."""
    best: dict[int, float] = {}
    for name, (batch, _) in FIXED.items():
        best[batch] = min(best.get(batch, math.inf), figures[name])
    return best


def noise_scale(rounds: list[dict]) -> float:
    """Of these rounds together; not a number if it is lost in noise."""
    part = [one for one in rounds if one["gradient_variance"] is not None]
    variance = sum(one["tokens"] * one["gradient_variance"] for one in part)
    squared_norm = sum(one["tokens"] * one["gradient_squared_norm"] for one in part)
    return variance / squared_norm if squared_norm > 0 else math.nan


def mean_curve(seeds: list[Curve], axis: str) -> dict:
    """Loss at equal parts of the way, the mean of the seeds."""
    least = min(curve.points[-1][axis] for curve in seeds)
    values = [least * part / CURVE_POINTS for part in range(1, CURVE_POINTS + 1)]
    return {"until": least,
            "loss": [round(statistics.mean(curve.at(axis, value, "loss") for curve in seeds), 4) for value in values]}


def figures_of(seeds: list[Curve], target: float) -> dict:
    """One kind of batch: mean and half the range of each figure, and its curves."""
    middle = [len(curve.rounds) // 2 for curve in seeds]
    return {"loss_at_tokens": spread([curve.at("tokens", TOKENS, "loss") for curve in seeds], 4),
            "loss_after_steps": spread([curve.at("steps", STEPS, "loss") for curve in seeds], 4),
            "steps_to_target": spread([curve.at("loss", target, "steps") for curve in seeds], 1),
            "tokens_to_target": spread([curve.at("loss", target, "tokens") for curve in seeds], 0),
            "noise_first": spread([noise_scale(one.rounds[:half]) for one, half in zip(seeds, middle)], 2),
            "noise_second": spread([noise_scale(one.rounds[half:]) for one, half in zip(seeds, middle)], 2),
            "curves": {axis: mean_curve(seeds, axis) for axis in AXES}}


def growth_of(rounds: list[dict]) -> dict:
    """Of a growing batch: tokens at which it reached each size, and the noise scale by rounds."""
    reached = []
    for batch in SIZES:
        first = next((i for i, one in enumerate(rounds) if one["batch"] >= batch), None)
        reached.append(None if first is None else sum(one["tokens"] for one in rounds[:first]))
    scales = [one["noise_scale"] for one in rounds[::4]]
    return {"tokens_to_size": reached, "noise_scale": [None if one is None else round(one, 1) for one in scales]}


def summary(curves: dict[str, list[Curve]]) -> dict:
    """The record without its source."""
    losses = {name: statistics.mean(curve.at("tokens", TOKENS, "loss") for curve in seeds)
              for name, seeds in curves.items()}
    # So that each batch reaches the target with one of its learning rates.
    target = max(best_by_batch(losses).values()) + 0.05
    times = {}
    for batch in sorted({batch for batch, _ in FIXED.values()}):
        seconds = [one for seeds in curves.values() for curve in seeds for one in curve.step_seconds.get(batch, [])]
        times[str(batch)] = round(1000 * min(seconds) / batch, 3)
    return {"seeds": len(curves[GROWING[0]]), "target": round(target, 4), "sequence_ms": times,
            "growth": {name: growth_of(curves[name][0].rounds) for name in GROWING},
            "kinds": {name: figures_of(seeds, target) for name, seeds in curves.items()}}


def shown(figure: list[float] | None, digits: int, without: str = "not reached") -> str:
    """Mean and half the range, in a table."""
    return without if figure is None else f"{figure[0]:,.{digits}f} ± {figure[1]:,.{digits}f}"


def critical_batch(kinds: dict) -> float | None:
    """E_min / S_min in sequences: E = E_min + S_min B, the paper's law, through the best runs to the target.

    None if a batch does not reach the target, or larger ones need no more tokens.
    """
    sequences = best_by_batch({name: (kinds[name]["tokens_to_target"] or [math.inf])[0] / LENGTH for name in FIXED})
    if math.inf in sequences.values():
        return None
    line = statistics.linear_regression(list(sequences), list(sequences.values()))
    return line.intercept / line.slope if line.slope > 0 else None


def critical_finding(critical: float | None, scales: list[float]) -> str:
    """The critical batch against the noise scales of the first halves."""
    if critical is None:
        return "The fixed batches do not tell the critical batch."
    is_within = bool(scales) and min(scales) <= critical <= max(scales)
    return ("The critical batch by the fixed ones (E_min / S_min, with the better learning rate of each) is "
            f"{critical:.0f} sequences. It lies {'within' if is_within else '**outside** of'} the noise scales of the "
            f"first halves, {span(scales, '{:.1f}') if scales else 'which are lost in noise'}.")


def findings(record: dict) -> str:
    """What follows from the figures."""
    kinds, times = record["kinds"], list(record["sequence_ms"].values())
    first = [one["noise_first"][0] for one in kinds.values() if one["noise_first"]]
    grown = [one for one in kinds.values()
             if one["noise_first"] and one["noise_second"] and one["noise_second"][0] > one["noise_first"][0]]
    loss = {name: one["loss_at_tokens"][0] for name, one in kinds.items() if one["loss_at_tokens"]}
    best = min(loss, key=loss.get)
    tokens, steps = (list(best_by_batch({name: (kinds[name][figure] or [math.inf])[0] for name in FIXED}).values())
                     for figure in ("tokens_to_target", "steps_to_target"))
    law = sorted(tokens) == tokens and sorted(steps, reverse=True) == steps
    sentences = [
        f"The times of a sequence differ by {100 * (max(times) / min(times) - 1):.0f} % between the batches.",
        critical_finding(critical_batch(kinds), first),
        f"The noise scale is larger in the second half in {len(grown)} of {len(kinds)} kinds of runs.",
        f"A larger fixed batch {'always' if law else 'does **not** always'} need{'s' if law else ''} more tokens and "
        "fewer steps to the target.",
        f"The least loss at equal tokens has {kind(best)}: {loss[best]:.3f}."]
    for name in (name for name in GROWING if name in loss):
        place = 1 + sorted(loss.values()).index(loss[name])
        sentences.append(f"By loss at equal tokens {kind(name)} is number {place} of {len(loss)} "
                         f"({loss[name]:.3f}).")
    for name in (name for name in FIXED if name.endswith(", sqrt") and name.replace("sqrt", "none") in FIXED):
        other = name.replace("sqrt", "none")
        sentences.append(f"At equal tokens {kind(name)} is {'better' if loss[name] < loss[other] else 'not better'} "
                         f"than {kind(other)}: {loss[name]:.3f} and {loss[other]:.3f}.")
    return bullets(sentences)


def kind(name: str) -> str:
    """A row's name in a sentence."""
    return f'the row "{name}"'


def page(record: dict) -> str:
    """The figures in Markdown."""
    target, kinds = record["target"], record["kinds"]
    rows = [[name, shown(one["loss_at_tokens"], 3), shown(one["loss_after_steps"], 3),
             shown(one["steps_to_target"], 0),
             shown(one["tokens_to_target"] and [value / 1000 for value in one["tokens_to_target"]], 0),
             shown(one["noise_first"], 1, "lost in noise"), shown(one["noise_second"], 1, "lost in noise")]
            for name, one in kinds.items()]
    growth = [[name, ", ".join("never" if tokens is None else f"{tokens:,}" for tokens in one["tokens_to_size"]),
               ", ".join("-" if scale is None else f"{scale:.0f}" for scale in one["noise_scale"])]
              for name, one in record["growth"].items()]
    times = ", ".join(f"{value:.2f} ms in steps of {batch}" for batch, value in record["sequence_ms"].items())
    return ("# Batches that grow by the noise scale, and fixed ones\n\n"
            + wrap(f"The head of the script describes the runs. Each figure is the mean of {record['seeds']} seeds and "
                   "half their range. [Measurements](../results.md#the-gradient-noise-scale) says more. A sequence "
                   f"takes {times}.")
            + "\n![Loss by tokens and by steps](dynamic_batch.svg)\n\n" + source_line(record["source"])
            + table(["batch, learning rate", f"loss at {TOKENS:,} tokens", f"loss after {STEPS} steps",
                     f"steps to loss {target:.2f}", "thousand tokens to it", "noise scale, first half of the rounds",
                     "second half"], rows)
            + "\nThe growing batches with seed 1:\n\n" + AS_ABOVE
            + table(["growing", f"tokens at which the batch reached {', '.join(map(str, SIZES))}",
                     "noise scale by 4 rounds"], growth) + "\n" + findings(record))


def draw(record: dict, path: Path):
    """Loss over tokens and over steps, the mean of the seeds."""
    figure, both = pyplot_for(path).subplots(1, 2, figsize=(11, 5), sharey=True)
    for axes, axis in zip(both, AXES):
        for name, one in record["kinds"].items():
            curve = one["curves"][axis]
            values = [curve["until"] * part / CURVE_POINTS for part in range(1, CURVE_POINTS + 1)]
            axes.plot(values, curve["loss"], linewidth=2.4 if name in GROWING else 1,
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


def measure(options: argparse.Namespace) -> dict:
    """The record."""
    of = source()
    with tempfile.TemporaryDirectory(prefix="farstep-batch-") as temporary:
        return {"source": of} | summary(all_curves(options.binary, options.runs or Path(temporary), options.seeds))


def main() -> int:
    """Trains, writes and prints."""
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=Path, help="folder of the runs, whose finished ones are not repeated")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    publish("dynamic_batch", options, lambda: measure(options), page, draw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
