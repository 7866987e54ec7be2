#!/usr/bin/env python3
"""Measures what the planner leaves of the idle time: real processes that emulate unequal speeds, and the
same in simulation, case by case.

Prints one table: waiting for peers as a share of all sites' time, measured and simulated, and the
least busy site. Run it on an otherwise quiet machine, after scripts/quickstart.sh has made the data:
  python3 tests/bench/planner_idle.py [--binary build/release/farstep] [--scale 0.3] [--rounds 6]
With --strategy ring_all_reduce (or another one that sums gradients) the sites take every step
together, and the policies divide the batch of a step:
  python3 tests/bench/planner_idle.py --strategy ring_all_reduce --base-batch 16 --base-steps 25
Standard library only.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "end_to_end"))

PAPER_SECONDS = (0.239, 0.25, 0.104, 0.201)  # a step of nodes 1 to 4
PAPER_TFLOPS = ((113.8,) * 4, (113.8,) * 3 + (130.0,), (165.0,) * 4, (142.0,) * 2 + (125.0,) * 2)
SPREAD_SECONDS = (0.4, 0.2, 0.133, 0.1)  # 4:1


class Case:
    """One row of the table."""

    def __init__(self, name: str, policy: str, seconds: tuple, slows_at: int | None = None):
        self.name, self.policy, self.seconds, self.slows_at = name, policy, seconds, slows_at


def profiles(case: Case, scale: float) -> list[dict]:
    """The sites' profiles: the paper's TFLOPS, and a step time of the batch that is used."""
    return [{"site": f"node{i + 1}", "links": [],
             "devices": [{"name": "GPU", "fp16_tflops": tflops, "bf16_tflops": None,
                          "memory_bytes": None, "max_micro_batch": None,
                          "step_seconds": [{"micro_batch": 4, "seconds": seconds * scale},
                                           {"micro_batch": 8, "seconds": 2 * seconds * scale}]}
                         for tflops in PAPER_TFLOPS[i]]}
            for i, seconds in enumerate(case.seconds)]


def plan_of(case: Case, options: argparse.Namespace) -> dict:
    """The plan's settings."""
    return {"policy": case.policy, "base_steps": options.base_steps, "base_batch": options.base_batch}


def shares(events_folder: Path, first_round: int) -> tuple[float, float]:
    """Share of waiting in all time, and the busy share of the least busy site, from a round on."""
    waited = total = 0.0
    least_busy = 1.0
    for path in sorted(events_folder.glob("*/events.jsonl")):
        compute = other = 0.0
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["event"] not in ("step", "span") or event["round"] < first_round:
                continue
            if event["event"] == "step":
                compute += event["seconds"]
                other += event["data_seconds"]
            else:
                other += event["seconds"]
                waited += event["seconds"] if event["cause"] == "wait" else 0
        total += compute + other
        least_busy = min(least_busy, compute / (compute + other))
    return waited / total, least_busy


def measure(case: Case, options: argparse.Namespace, folder: Path) -> Path:
    """Runs the case with real processes; returns the folder of its records."""
    os.environ.setdefault("FARSTEP_BINARY", options.binary)
    os.environ.setdefault("FARSTEP_TEST_DATA", options.data)
    from cluster import Cluster  # reads the two variables
    sites = {}
    for i, (seconds, profile) in enumerate(zip(case.seconds, profiles(case, options.scale))):
        emulate: dict = {"sequence_seconds": seconds * options.scale / 4}
        if case.slows_at and i == 0:
            emulate["changes"] = [{"step": case.slows_at, "times": 2}]
        sites[i] = {"devices": [{"kind": "cpu", "threads": 1, "emulate": emulate}]}
        if case.policy.endswith("by_tflops"):
            sites[i]["profile"] = f"node{i + 1}.profile.json"
            (folder / f"node{i + 1}.profile.json").write_text(json.dumps(profile), encoding="utf-8")
    cluster = Cluster(folder, len(case.seconds), {
        "model": {"vocabulary": 2048}, "outer": {"rounds": options.rounds},
        "plan": plan_of(case, options), "strategy": {"kind": options.strategy},
        "evaluate": {"every_rounds": 0}, "checkpoint": {"every_rounds": options.rounds}}, sites)
    result = cluster.launch(timeout=3600)
    if result.returncode != 0:
        raise RuntimeError(result.stdout + result.stderr)
    return cluster.output


def simulate(case: Case, options: argparse.Namespace, folder: Path) -> Path:
    """Simulates the case; returns the folder of its records."""
    sites = []
    for i, profile in enumerate(profiles(case, options.scale)):
        site: dict = {"profile": profile, "hide_profile": case.policy == "hybrid"}
        if case.slows_at and i == 0:
            rounds_before = (case.slows_at - 1) // 100
            site["speed"] = [{"round": rounds_before + 1, "times": 2}]
        sites.append(site)
    scenario = folder / "scenario.json"
    scenario.write_text(json.dumps({
        "name": case.name, "rounds": options.rounds, "sites": sites,
        "strategy": {"kind": options.strategy}, "plan": plan_of(case, options)}), encoding="utf-8")
    out = folder / "simulated"
    result = subprocess.run([options.binary, "simulate", "--scenario", scenario, "--out", out],
                            capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return out


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=str(REPOSITORY / "build/release/farstep"))
    parser.add_argument("--data", default=str(REPOSITORY / "data/quickstart"))
    parser.add_argument("--scale", type=float, default=0.3, help="of the paper's step times")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--strategy", default="low_communication")
    parser.add_argument("--base-steps", type=int, default=100)
    parser.add_argument("--base-batch", type=int, default=4)
    parser.add_argument("--only", help="run cases whose name contains this")
    options = parser.parse_args()
    # The slowing site takes its 251st step in the middle of the third round.
    cases = [Case("four nodes, uniform", "uniform", PAPER_SECONDS),
             Case("four nodes, steps_by_tflops", "steps_by_tflops", PAPER_SECONDS),
             Case("four nodes, hybrid", "hybrid", PAPER_SECONDS),
             Case("4:1 spread, hybrid", "hybrid", SPREAD_SECONDS),
             Case("node 1 slows to half, hybrid", "hybrid", PAPER_SECONDS, slows_at=251)]
    if options.strategy not in ("low_communication", "local_sgd", "eager_updates"):
        cases[1] = Case("four nodes, batch_by_tflops", "batch_by_tflops", PAPER_SECONDS)
    print("case                             rounds  waiting  simulated  least busy site")
    for case in cases:
        if options.only and options.only not in case.name:
            continue
        with tempfile.TemporaryDirectory(prefix="farstep-idle-") as temporary:
            folder = Path(temporary)
            measured = measure(case, options, folder)
            simulated = simulate(case, options, folder)
            first = 1 if case.policy != "hybrid" else 5 if case.slows_at else 3
            waiting, busy = shares(measured, first)
            expected, _ = shares(simulated, first)
            print(f"{case.name:<32} {first:>2} to {options.rounds:<2} {100 * waiting:6.2f} % "
                  f"{100 * expected:8.2f} % {100 * busy:14.2f} %", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
