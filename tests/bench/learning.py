#!/usr/bin/env python3
"""What do sites that sync rarely lose against one that syncs always, and what helps? Standard
library only.

Every run is made by sites_in_turn, in one process on one core. A seed gives the same windows in
every run, so losses are compared in pairs. Long runs begin from one warm start: 600 steps of one
site with the batch of all four. A rerun goes on after the last finished run.
"""

import argparse
import itertools
import json
import shlex
import statistics
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
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
SITES = 4
WARM_STEPS = 600
WARM_SHARE = 0.25  # of the learning rate's schedule; a run that begins from it takes the rest
LONG_ROUNDS = 32
FIRST_ROUNDS = 8
GAP_STEPS = 800

# (local steps, batch) of each site. A round has 400 sequences in all, as four equal sites with 25
# steps: steps in the paper's speed ratios; steps and batches of hybrid's kind; 4:1.
CONDITIONS = {
    "equal": ((25, 4),) * 4,
    "steps and batches": ((7, 4), (7, 4), (17, 16), (9, 8)),
    "local steps": ((18, 4), (18, 4), (42, 4), (22, 4)),
    "4:1": ((40, 4), (40, 4), (10, 4), (10, 4)),
}
EQUAL = "equal"
RULES = ("batch", "uniform", "tokens", "tokens_squared_per_step", "fednova")
TAILS = (2, 4, 8)


def coefficients(rule: str, works: tuple) -> list[float]:
    """What each site's delta counts in the mean; the formulas of outer_optimizer/schedule."""
    tokens = [steps * batch for steps, batch in works]
    weights = {"uniform": [1 for _ in works],
               "batch": [batch for _, batch in works],
               "tokens": tokens,
               "tokens_squared_per_step": [steps * batch**2 for steps, batch in works],
               "fednova": tokens}[rule]
    shares = [weight / sum(weights) for weight in weights]
    if rule != "fednova":
        return shares
    effective = sum(share * steps for share, (steps, _) in zip(shares, works))
    return [share * effective / steps for share, (steps, _) in zip(shares, works)]


def same_direction(left: str, right: str, works: tuple) -> bool:
    """Whether two rules' means differ by a factor only, which a tuned outer rate takes up."""
    shares = [[value / sum(own) for value in own]
              for own in (coefficients(left, works), coefficients(right, works))]
    return all(abs(a - b) < 1e-9 for a, b in zip(*shares, strict=True))


def rules_that_differ(condition: str) -> list[str]:
    """One rule for each direction of the mean."""
    chosen: list[str] = []
    for rule in RULES:
        if not any(same_direction(rule, other, CONDITIONS[condition]) for other in chosen):
            chosen.append(rule)
    return chosen


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
            "outer": {"rounds": rounds, **outer}, "sync": sync or {},
            "plan": {"base_steps": works[0][0]},
            "evaluate": {"every_rounds": every, "windows": 0},
        }

    def of(self, model: dict) -> dict:
        """The run file with that model."""
        return {**self.file, "model": model}


def warm_start(seed: int) -> Run:
    """The one site that all long runs begin from."""
    run = Run("warm start", seed, ((25, SITES * BATCH),), WARM_STEPS // 25,
              {"learning_rate": 1.0, "momentum": 0.0}, warm=False, every=1)
    run.part = (0.0, WARM_SHARE)
    return run


def whole_data_parallel(seed: int, peak: float) -> Run:
    """Warm start and synchronous run as one, for choosing the inner learning rate."""
    return Run("whole", seed, ((50, SITES * BATCH),), 40, {"learning_rate": 1.0, "momentum": 0.0},
               inner={"peak_learning_rate": peak}, warm=False, every=4)


def data_parallel(seed: int, steps: int, **changes: object) -> Run:
    """A synchronous run with the batch of all sites: plain AdamW."""
    return Run("data parallel", seed, ((25, SITES * BATCH),), steps // 25,
               {"learning_rate": 1.0, "momentum": 0.0}, tails=TAILS, **changes)


def long_run(seed: int, condition: str, rule: str, eta: float, mu: float = 0.9,
             **changes: object) -> Run:
    """Many rounds from the warm start, of sites with the condition's work."""
    return Run("long", seed, CONDITIONS[condition], LONG_ROUNDS,
               {"learning_rate": eta, "momentum": mu, "averaging": rule}, **changes)


def first_rounds(seed: int, condition: str, rule: str, eta: float, mu: float) -> Run:
    """A few rounds from scratch."""
    return Run("first rounds", seed, CONDITIONS[condition], FIRST_ROUNDS,
               {"learning_rate": eta, "momentum": mu, "averaging": rule}, warm=False)


def equal_run(seed: int, steps: int, eta: float, mu: float, *, total: int,
              **changes: object) -> Run:
    """Four equal sites that sync every `steps` steps, for `total` steps from the warm start."""
    return Run("equal", seed, ((steps, BATCH),) * SITES, total // steps,
               {"learning_rate": eta, "momentum": mu}, tails=TAILS, **changes)


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

    def state(self) -> Path:
        """The file of the warm start."""
        return self.arguments.work / f"warm-{self.arguments.model}.safetensors"

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
        file = self.arguments.work / f"run-{threading.get_ident()}.json"
        file.write_text(json.dumps(run.of(self.model)), encoding="utf-8")
        command = [*shlex.split(self.arguments.prefix), str(self.arguments.binary), str(file),
                   "--data", str(self.arguments.data), "--progress-from", str(run.part[0]),
                   "--progress-to", str(run.part[1])]
        if is_warm_start:
            command += ["--save", str(self.state())]
        elif run.warm:
            command += ["--from", str(self.state())]
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
        print(f"{run.name} {run.seed} [{works}] {outer} {sync} {result.get('loss')} "
              f"{result.get('tails')} {result.get('processor_seconds')}", flush=True)

    def make_all(self, runs: Iterable[Run]) -> None:
        """Makes runs side by side; a run that others begin from comes before them."""
        with ThreadPoolExecutor(self.arguments.parallel) as pool:
            for _ in pool.map(self.make, runs):
                pass

    def loss(self, run: Run) -> float | None:
        """The run's loss, if it is done."""
        result = self.find(run)
        return result and result["loss"]


# ---- studies: the runs of each, in the order in which they are made ----


def warm_starts(seeds: list[int]) -> Iterator[Run]:
    """Where all long runs begin."""
    return (warm_start(seed) for seed in seeds[:1])


# Of a synchronous run from scratch, with 1,600 steps, the best is 0.003.
PEAKS = (0.002, 0.003, 0.006)


def peaks(seeds: list[int]) -> Iterator[Run]:
    """For choosing the inner learning rate."""
    return (whole_data_parallel(seeds[0], peak) for peak in PEAKS)


ETAS = (0.3, 0.7, 0.15)


def rule_runs(seed: int, eta: float) -> list[Run]:
    """Every rule under every condition."""
    return [long_run(seed, condition, rule, eta)
            for condition in CONDITIONS for rule in rules_that_differ(condition)]


def rule_sweep(seeds: list[int]) -> Iterator[Run]:
    """The rules with all seeds and outer rates, the most telling first."""
    yield from rule_runs(seeds[0], ETAS[0])
    for seed in seeds[1:]:
        yield from rule_runs(seed, ETAS[0])
    for eta in ETAS[1:]:
        for seed in seeds:
            yield from rule_runs(seed, eta)


def first_runs(seeds: list[int]) -> Iterator[Run]:
    """Every rule over a few rounds from scratch, at the outer settings that suit them."""
    return (first_rounds(seed, condition, rule, 0.7, 0.5) for seed in seeds
            for condition in CONDITIONS if condition != EQUAL
            for rule in rules_that_differ(condition))


# What may close the gap: local steps, outer rate, momentum, how fragments are synced, and the inner
# peak learning rate; the synchronous run's is PEAK.
STREAMING = {"fragments": 4, "alpha": 0.5}
GAP_SWEEP = (
    (50, 0.7, 0.9, {}, PEAK), (50, 0.7, 0.5, {}, PEAK), (50, 0.7, 0.9, STREAMING, PEAK),
    (50, 0.7, 0.5, {}, PEAK / 2), (100, 0.7, 0.9, {}, PEAK), (100, 0.7, 0.5, {}, PEAK / 2),
    (50, 0.7, 0.5, STREAMING, PEAK), (50, 1.0, 0.5, {}, PEAK), (100, 0.7, 0.9, STREAMING, PEAK),
    (50, 1.0, 0.7, {}, PEAK), (50, 1.3, 0.5, {}, PEAK), (100, 1.0, 0.5, {}, PEAK),
    (50, 1.0, 0.0, {}, PEAK), (50, 0.7, 0.5, {}, 1.5 * PEAK), (100, 1.0, 0.7, {}, PEAK),
    (50, 0.7, 0.9, {"fragments": 4}, PEAK),
)
# What is told of with all seeds.
GAP_FINAL = ((0.7, 0.9, {}), (1.0, 0.5, {}), (0.7, 0.9, STREAMING), (1.0, 0.7, {}))


def gap_sweep(seed: int) -> Iterator[Run]:
    """The synchronous run, and four equal sites under every setting."""
    yield data_parallel(seed, GAP_STEPS)
    for steps, eta, mu, sync, peak in GAP_SWEEP:
        yield equal_run(seed, steps, eta, mu, total=GAP_STEPS, sync=sync,
                        inner={"peak_learning_rate": peak})


def gap_final(seed: int) -> Iterator[Run]:
    """What the other seeds repeat."""
    yield data_parallel(seed, GAP_STEPS)
    for steps in (50, 100):
        for eta, mu, sync in GAP_FINAL:
            yield equal_run(seed, steps, eta, mu, total=GAP_STEPS, sync=sync)


# ---- tables ----


def spread(values: list[float]) -> str:
    """Mean of the values, and the least and the greatest of them."""
    text = f"{statistics.mean(values):+.4f}"
    if len(values) == 1:
        return text
    return text + f" ({min(values):+.4f} to {max(values):+.4f})"


def paired(bench: Bench, seeds: list[int], run: Callable[[int], Run],
           base: Callable[[int], Run]) -> list[float]:
    """The run's loss minus that of the base, of every seed that has both."""
    both = [(bench.loss(run(seed)), bench.loss(base(seed))) for seed in seeds]
    return [own - other for own, other in both if own is not None and other is not None]


def rule_table(bench: Bench, seeds: list[int], of: Callable[..., Run],
               settings: Iterable[tuple]) -> str:
    """Markdown: each rule under each condition against `batch` and against equal sites."""
    lines = ["| unequal | outer | rule | seeds | mean loss | minus that of `batch` "
             "| minus that of equal sites |", "|---|---|---|---|---|---|---|"]
    for condition, setting in itertools.product(CONDITIONS, settings):
        for rule in rules_that_differ(condition):
            def run(seed: int, condition=condition, rule=rule, setting=setting) -> Run:
                return of(seed, condition, rule, *setting)

            losses = [loss for seed in seeds if (loss := bench.loss(run(seed))) is not None]
            if not losses:
                continue
            names = [name for name in RULES if same_direction(name, rule, CONDITIONS[condition])]
            row = [condition, " / ".join(map(str, setting)),
                   "all" if len(names) == len(RULES) else ", ".join(names), str(len(losses)),
                   f"{statistics.mean(losses):.4f}"]
            for base in ((condition, "batch"), (EQUAL, "batch")):
                def base_run(seed: int, base=base, setting=setting) -> Run:
                    return of(seed, *base, *setting)

                differences = paired(bench, seeds, run, base_run)
                row.append("" if (condition, rule) == base or not differences
                           else spread(differences))
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def gap_table(bench: Bench, seeds: list[int]) -> str:
    """Markdown: every setting against the synchronous run of the same tokens."""
    lines = ["| H | outer rate / momentum | sync | inner peak | seeds | mean loss | gap "
             "| loss of the mean of the last 8 thetas |", "|---|---|---|---|---|---|---|---|"]
    for steps, eta, mu, sync, peak in sorted(GAP_SWEEP, key=lambda one: one[0]):
        def run(seed: int, steps=steps, eta=eta, mu=mu, sync=sync, peak=peak) -> Run:
            return equal_run(seed, steps, eta, mu, total=GAP_STEPS, sync=sync,
                             inner={"peak_learning_rate": peak})

        results = [found for seed in seeds if (found := bench.find(run(seed)))]
        if not results:
            continue
        gaps = paired(bench, seeds, run, lambda seed: data_parallel(seed, GAP_STEPS))
        losses = [one["loss"] for one in results]
        of_means = [one["tails"][str(TAILS[-1])] for one in results]
        lines.append(f"| {steps} | {eta} / {mu} | {json.dumps(sync) if sync else ''} | {peak:g} "
                     f"| {len(results)} | {statistics.mean(losses):.4f} | {spread(gaps)} "
                     f"| {statistics.mean(of_means):.4f} |")
    return "\n".join(lines)


def print_tables(bench: Bench, seeds: list[int]) -> None:
    """All that is known so far."""
    base = [loss for seed in seeds if (loss := bench.loss(data_parallel(seed, GAP_STEPS)))]
    print("synchronous:", *(f"{loss:.4f}" for loss in base))
    print(rule_table(bench, seeds, long_run, [(eta, 0.9) for eta in ETAS]))
    print(rule_table(bench, seeds, first_rounds, [(0.7, 0.5)]))
    print(gap_table(bench, seeds))


STUDIES: dict[str, Callable[[list[int]], Iterable[Run]]] = {
    "warm": warm_starts,
    "peaks": peaks,
    "rules": rule_sweep,
    "first": first_runs,
    "gap": lambda seeds: (run for seed in seeds for run in gap_sweep(seed)),
    "gap_final": lambda seeds: (run for seed in seeds for run in gap_final(seed)),
}


def main() -> None:
    """Makes what is missing of the named studies."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="+", choices=[*STUDIES, "tables"])
    parser.add_argument("--binary", type=Path, default=REPOSITORY / "build/release/sites_in_turn")
    parser.add_argument("--data", type=Path, default=REPOSITORY / "data/quickstart")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs/learning")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--model", choices=MODELS, default="0.2")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--prefix", default="nice -n 19", help="what each run is started by")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    for study in arguments.study:
        if study == "tables":
            print_tables(bench, arguments.seeds)
        else:
            bench.make_all(STUDIES[study](arguments.seeds))


if __name__ == "__main__":
    main()
