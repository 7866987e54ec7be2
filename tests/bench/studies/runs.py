"""Runs of the learning studies: what each trains, and how sites_in_turn makes it."""

import argparse
import json
import os
import shlex
import subprocess
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RUN_SECONDS = 3600

# By millions of parameters.
MODELS = {
    "0.2": {"preset": "tiny", "vocabulary": 2048, "hidden": 64, "intermediate": 176, "layers": 2,
            "heads": 2, "kv_heads": 1},
    "0.6": {"preset": "tiny", "vocabulary": 2048, "hidden": 128, "intermediate": 256, "layers": 2,
            "heads": 4, "kv_heads": 2},
}
SEQUENCE_LENGTH = 64
BATCH = 4  # of a site
PEAK = 0.003  # of the inner learning rate
# What an optimizer's runs change of the inner settings, warm start included. Muon's peak is the best
# of its synchronous run (study `peaks`).
INNER: dict[str, dict] = {"adamw": {},
                          "muon": {"optimizer": "muon", "peak_learning_rate": 0.006}}
SITES = 4
TAILS = (2, 4, 8)
SYNCHRONOUS = {"learning_rate": 1.0, "momentum": 0.0}  # one site without an outer optimizer
WARM_STEPS = 600
WARM_SHARE = 0.25  # of the learning rate's schedule; a run that begins from it takes the rest


class Run:
    """A run: its run file, and how it is made."""

    def __init__(self, name: str, seed: int, works: tuple, rounds: int, outer: dict, *,
                 sync: dict | None = None, inner: dict | None = None, warm: bool = True,
                 tails: tuple = (), every: int = 0) -> None:
        self.name, self.seed, self.warm, self.tails = name, seed, warm, tails
        self.part = (WARM_SHARE, 1.0) if warm else (0.0, 1.0)
        self.file = {
            "name": "learning", "seed": seed,
            "sites": [{"name": f"s{site}", "local_steps": steps, "batch": batch}
                      for site, (steps, batch) in enumerate(works)],
            "model": {}, "data": {"sequence_length": SEQUENCE_LENGTH},
            "inner": {"peak_learning_rate": PEAK, "compute": "bf16", **(inner or {})},
            # Only the study of a run's end goes to the mean at last.
            "outer": {"rounds": rounds, "mean_rounds": 0, **outer}, "sync": sync or {},
            "plan": {"base_steps": works[0][0]},
            "evaluate": {"every_rounds": every, "windows": 0},
        }

    @property
    def optimizer(self) -> str:
        """The inner one."""
        return self.file["inner"].get("optimizer", "adamw")

    def of(self, model: dict) -> dict:
        """The run file with that model."""
        return {**self.file, "model": model}


def warm_start(seed: int, optimizer: str) -> Run:
    """The one site that all long runs of an optimizer begin from."""
    run = Run("warm start", seed, ((25, SITES * BATCH),), WARM_STEPS // 25, SYNCHRONOUS,
              inner=INNER[optimizer], warm=False, every=1)
    run.part = (0.0, WARM_SHARE)
    return run


def whole_data_parallel(seed: int, inner: dict) -> Run:
    """Warm start and synchronous run as one, for choosing the inner learning rate."""
    return Run("whole", seed, ((50, SITES * BATCH),), 40, SYNCHRONOUS, inner=inner, warm=False,
               every=4)


def data_parallel(seed: int, steps: int, *, batch: int = BATCH, **changes: object) -> Run:
    """A synchronous run with the batch of all sites."""
    return Run("data parallel", seed, ((25, SITES * batch),), steps // 25, SYNCHRONOUS,
               tails=TAILS, **changes)


def equal_run(seed: int, steps: int, eta: float, mu: float, *, total: int, batch: int = BATCH,
              mean_rounds: int = 0, **changes: object) -> Run:
    """Four equal sites that sync every `steps` steps, for `total` steps."""
    return Run("equal", seed, ((steps, batch),) * SITES, total // steps,
               {"learning_rate": eta, "momentum": mu, "mean_rounds": mean_rounds}, tails=TAILS,
               **changes)


class Bench:
    """Makes runs that are not done yet, and keeps their results."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.model = MODELS[arguments.model]
        self.results: dict[str, dict] = {}
        self.lock = threading.Lock()
        arguments.work.mkdir(parents=True, exist_ok=True)
        self.file = arguments.work / "results.jsonl"
        if self.file.exists():
            for line in self.file.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                self.results[record["key"]] = record["result"]

    def state(self, run: Run) -> Path:
        """The warm start of the run's optimizer."""
        name = f"warm-{self.arguments.model}-{run.optimizer}.safetensors"
        return self.arguments.work / name

    def key(self, run: Run) -> str:
        """What the run is, for finding its result again."""
        return json.dumps([run.of(self.model), run.part, run.warm], sort_keys=True)

    def find(self, run: Run) -> dict | None:
        """The run's result, if it is done."""
        return self.results.get(self.key(run))

    def make(self, run: Run) -> None:
        """Makes a run, unless it is done."""
        if self.find(run) is not None:
            return
        is_warm_start = run.name == "warm start"
        file = self.arguments.work / f"run-{os.getpid()}-{threading.get_ident()}.json"
        file.write_text(json.dumps(run.of(self.model)), encoding="utf-8")
        command = [*shlex.split(self.arguments.prefix), str(self.arguments.binary), str(file),
                   "--data", str(self.arguments.data), "--progress-from", str(run.part[0]),
                   "--progress-to", str(run.part[1])]
        if is_warm_start:
            command += ["--save", str(self.state(run))]
        elif run.warm:
            command += ["--from", str(self.state(run))]
        if run.tails:
            command += ["--tails", *map(str, run.tails)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{shlex.join(command)} ended with {done.returncode}: {done.stderr}")
        result = json.loads(done.stdout)
        with self.lock, self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"key": self.key(run), "result": result}) + "\n")
            self.results[self.key(run)] = result
        outer, sync = run.file["outer"], run.file["sync"]
        works = " ".join(f"{site['local_steps']}x{site['batch']}" for site in run.file["sites"])
        print(f"{run.name} {run.seed} [{works}] {run.file['inner']} {outer} {sync} "
              f"{result.get('loss')} {result.get('processor_seconds')}", flush=True)

    def make_all(self, runs: Iterable[Run]) -> None:
        """Makes runs side by side; a run that others begin from comes before them."""
        with ThreadPoolExecutor(self.arguments.parallel) as pool:
            for _ in pool.map(self.make, runs):
                pass

    def loss(self, run: Run) -> float | None:
        """The run's loss, if it is done."""
        result = self.find(run)
        return result and result["loss"]
