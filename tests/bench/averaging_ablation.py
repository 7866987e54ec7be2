#!/usr/bin/env python3
"""Which averaging weights give the lowest loss where sites are unequal? Standard library only.

Four sites train on real text, with every averaging rule, under four conditions that all have the
same tokens a round; a seed gives the same weights and the same windows in every run. Rules that
have the same coefficients under a condition share one run. Needs the data that
scripts/quickstart.sh makes. A rerun goes on after the last finished run.
"""

import argparse
import hashlib
import json
import math
import shutil
import statistics
import subprocess
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RULES = ("uniform", "tokens", "batch", "fednova", "tokens_squared_per_step")
BASE_RULE = "batch"
SITES = ("node1", "node2", "node3", "node4")
EQUAL = "nothing"
SEQUENCE_LENGTH = 128
LAUNCH_SECONDS = 3600

# Half the quickstart's width and depth, so that three seeds of long runs take an hour.
MODEL = {"preset": "tiny", "vocabulary": 2048, "hidden": 64, "intermediate": 176, "layers": 2,
         "heads": 2, "kv_heads": 1}

# What is unequal, and (local steps, batch) of each site: 1472 sequences a round in all, about 100
# local steps a site as in the paper. The work of unequal sites is in proportion to the speeds
# 1/0.239, 1/0.25, 1/0.104 and 1/0.201, within 5 %.
CONDITIONS = {
    EQUAL: ((92, 4),) * 4,
    "local steps": ((68, 4), (64, 4), (156, 4), (80, 4)),
    "steps and batches": ((68, 4), (64, 4), (104, 6), (64, 5)),
    "batches": ((64, 4), (64, 4), (64, 10), (64, 5)),
}


def coefficients(rule: str, works: tuple) -> list[float]:
    """What each site's delta counts in the mean; the formulas of outer_optimizer/schedule."""
    weights = {"uniform": [1 for _ in works],
               "tokens": [steps * batch for steps, batch in works],
               "batch": [batch for _, batch in works],
               "fednova": [steps * batch for steps, batch in works],
               "tokens_squared_per_step": [steps * batch**2 for steps, batch in works]}[rule]
    scales = [1.0 for _ in works]
    if rule == "fednova":
        mean_steps = statistics.mean(steps for steps, _ in works)
        scales = [mean_steps / steps for steps, _ in works]
    return [weight / sum(weights) * scale for weight, scale in zip(weights, scales)]


def same(left: list[float], right: list[float]) -> bool:
    """Equal but for rounding."""
    return all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(left, right, strict=True))


def run_rule(condition: str, rule: str) -> str:
    """The rule whose run stands for this one: the first with the same coefficients."""
    works = CONDITIONS[condition]
    wanted = coefficients(rule, works)
    return next(other for other in (BASE_RULE, *RULES)
                if same(coefficients(other, works), wanted))


def run_file(arguments: argparse.Namespace, condition: str, rule: str, seed: int) -> dict:
    """run.json: a small model, the quickstart's optimizers; validation on all windows, at the end."""
    return {
        "name": "ablation", "seed": seed,
        "sites": [{"name": name, "local_steps": steps, "batch": batch}
                  for name, (steps, batch) in zip(SITES, CONDITIONS[condition])],
        "model": MODEL,
        "data": {"sequence_length": SEQUENCE_LENGTH},
        "inner": {"peak_learning_rate": 0.003, "warmup_fraction": 0.1, "compute": "bf16"},
        "outer": {"rounds": arguments.rounds, "learning_rate": arguments.outer_learning_rate,
                  "momentum": 0.5,
                  "averaging": rule},
        "evaluate": {"every_rounds": arguments.rounds, "windows": 0},
        "checkpoint": {"every_rounds": arguments.rounds},
        "deadlines": {"join_seconds": 600, "heartbeat_seconds": 5, "lost_after_seconds": 300,
                      "transfer_stall_seconds": 600},
    }


def site_file(arguments: argparse.Namespace, name: str) -> dict:
    """A site's config: one CPU thread."""
    return {"name": name, "run": "run.json",
            "coordinator": {"endpoint": f"tcp://127.0.0.1:{arguments.port}",
                            "host": name == SITES[0]},
            "network": {"address": "127.0.0.1"},
            "devices": [{"kind": "cpu", "threads": 1}],
            "data": str(arguments.data.resolve()), "output": "out"}


def farstep(arguments: argparse.Namespace, *words: object) -> str:
    """Standard output of a farstep command, which must succeed."""
    done = subprocess.run([str(arguments.binary), *map(str, words)], capture_output=True,
                          text=True, timeout=LAUNCH_SECONDS, check=False)
    if done.returncode != 0:
        raise SystemExit(f"farstep {words[0]} ended with {done.returncode}\n"
                         f"{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def last_round(site_output: Path) -> dict:
    """The record of the site's last round."""
    lines = (site_output / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return next(event for event in map(json.loads, reversed(lines)) if event["event"] == "round")


def train(arguments: argparse.Namespace, condition: str, rule: str, seed: int) -> dict:
    """One whole run; checks that the sites had the weights and the tokens that were meant."""
    folder = arguments.work / f"{condition}-{rule}-{seed}".replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(run_file(arguments, condition, rule, seed)))
    for name in SITES:
        (folder / f"{name}.json").write_text(json.dumps(site_file(arguments, name)))
    start = time.monotonic()
    farstep(arguments, "launch", folder)
    seconds = time.monotonic() - start

    report = json.loads(farstep(arguments, "report", folder / "out", "--json"))
    rounds = [last_round(folder / "out" / name) for name in SITES]
    weights = [event["averaging_weight"] for event in rounds]
    works = CONDITIONS[condition]
    if not same(weights, coefficients(rule, works)):
        raise SystemExit(f"{folder}: averaging weights {weights} are not those of '{rule}'")
    tokens = sum(site["tokens"] for site in report["sites"])
    meant = arguments.rounds * SEQUENCE_LENGTH * sum(steps * batch for steps, batch in works)
    if tokens != meant:
        raise SystemExit(f"{folder}: {tokens} tokens were trained on, {meant} were meant")
    shutil.rmtree(folder)
    return {"loss": report["final_loss"], "tokens": tokens, "weights": weights,
            "theta_hash": rounds[0]["theta_hash"], "seconds": round(seconds, 1)}


def load_results(arguments: argparse.Namespace) -> dict:
    """What is done already; refuses results of another binary or of other settings."""
    settings = {"rounds": arguments.rounds,
                "outer_learning_rate": arguments.outer_learning_rate,
                "conditions": CONDITIONS, "model": MODEL,
                "binary": hashlib.sha256(arguments.binary.read_bytes()).hexdigest()}
    settings = json.loads(json.dumps(settings))
    if not arguments.results.exists():
        return {"settings": settings, "runs": {}}
    results = json.loads(arguments.results.read_text(encoding="utf-8"))
    if results["settings"] != settings:
        raise SystemExit(f"{arguments.results} holds runs of other settings; choose another file")
    return results


def run_key(condition: str, rule: str, seed: int) -> str:
    """Name of the run in the results."""
    return f"{condition}/{run_rule(condition, rule)}/{seed}"


def run_all(arguments: argparse.Namespace, results: dict) -> None:
    """Does what is missing, condition by condition, and keeps every result at once."""
    for condition in arguments.conditions:
        for seed in arguments.seeds:
            for rule in RULES:
                key = run_key(condition, rule, seed)
                if key in results["runs"]:
                    continue
                result = train(arguments, condition, run_rule(condition, rule), seed)
                results["runs"][key] = result
                part = arguments.results.with_suffix(".part")
                part.write_text(json.dumps(results, indent=1), encoding="utf-8")
                part.replace(arguments.results)
                print(f"{key:40} loss {result['loss']:.5f}  {result['seconds']:6.1f} s", flush=True)


def spread(values: list[float], unit: str) -> str:
    """Mean of the values, and the least and the greatest of them."""
    if max(values) - min(values) == 0:
        return f"{values[0]:+.4f}{unit}"
    return f"{statistics.mean(values):+.4f}{unit} ({min(values):+.4f} to {max(values):+.4f})"


def table(results: dict, conditions: list[str], seeds: list[int]) -> str:
    """Markdown: loss by condition and rule, against the base rule and against equal sites."""
    def losses(condition: str, rule: str) -> list[float]:
        return [results["runs"][run_key(condition, rule, seed)]["loss"] for seed in seeds]

    equal = losses(EQUAL, BASE_RULE) if EQUAL in conditions else []
    lines = [f"| unequal | rule | mean loss | minus that of `{BASE_RULE}` "
             "| against equal sites |", "|---|---|---|---|---|"]
    for condition in conditions:
        base = losses(condition, BASE_RULE)
        for representative in dict.fromkeys(run_rule(condition, rule) for rule in RULES):
            names = [rule for rule in RULES if run_rule(condition, rule) == representative]
            values = losses(condition, representative)
            against_base = [a - b for a, b in zip(values, base)]
            against_equal = [100 * (a / b - 1) for a, b in zip(values, equal)]
            lines.append(f"| {condition} "
                         f"| {'all' if len(names) == len(RULES) else ', '.join(names)} "
                         f"| {statistics.mean(values):.4f} | {spread(against_base, '')} "
                         f"| {spread(against_equal, ' %') if equal else ''} |")
    return "\n".join(lines)


def main() -> None:
    """Runs what is missing and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=REPOSITORY / "build/release/farstep")
    parser.add_argument("--data", type=Path, default=REPOSITORY / "data/quickstart")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs/averaging_ablation",
                        help="folder of the runs; one is deleted when its result is kept")
    parser.add_argument("--results", type=Path, help="JSON file; WORK/results.json unless given")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=list(CONDITIONS))
    parser.add_argument("--outer-learning-rate", type=float, default=0.7)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--port", type=int, default=7800)
    arguments = parser.parse_args()
    arguments.results = arguments.results or arguments.work / "results.json"
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    results = load_results(arguments)
    run_all(arguments, results)
    print(table(results, arguments.conditions, arguments.seeds))


if __name__ == "__main__":
    main()
