"""Every strategy in real runs over the links of a lab, beside the simulation of the same runs."""

import json
import math
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from experiment import REPOSITORY, simulate, site, table
from real_run import Lab, train, validations

RATES = {"100 Mbit/s": 1e8, "10 Mbit/s": 1e7}
MODEL = {"preset": "tiny", "vocabulary": 1024, "hidden": 96, "intermediate": 256, "layers": 2, "heads": 4,
         "kv_heads": 2}
PARAMETERS, LENGTH, BATCH = 301_536, 128, 4
STEPS, DELAY_STEPS, LEAST_ROUNDS = 10, 2, 3
SECONDS = 15.0  # about how long a run trains
INTRODUCTION = f"""
## Real runs beside their simulation

Four processes in a lab train a model of {PARAMETERS:,} parameters with sequences of {LENGTH}. Their devices emulate the
step times of the four nodes. A round has {STEPS} steps of the slowest node, and a delay is {DELAY_STEPS} of them.
Strategies that exchange in every step have fewer where a run would take much longer than {SECONDS:.0f} s. Tokens a
second of the four sites together, one run each, with priority over other work of two cores:

"""
NOTES = """
- **Agree:** the bytes, and that local steps are faster than all, and the direct exchange faster than a master. Real
  rounds of local steps have 4 % more tokens, because the planner takes the measured step times from the second round
  on.
- **Slower than simulated**, by 6 to 38 %: most strategies. A likely reason, not isolated, is TCP's slow start, with
  which an exchange begins anew after a pause and which the simulation leaves out. At 10 Mbit/s queues overflow besides: in a repeated run of the direct exchange, sites sent up to 1.6 % of their bytes
  again, and a step took 2.1 to 3.2 s instead of 1.8 s. Hidden exchanges differ least.
- **Faster than simulated**, by 19 and 31 %: one parameter server. The simulation sends its means after all gradients
  have come. The real server adds up chunk by chunk, so its uplink and its downlink can work at once. A master updates
  in between, and is 10 and 11 % slower than simulated.
- **Loss at equal tokens:** steps together learn more from a token than local steps do. Synchronous strategies with
  equal steps have equal losses (6.888, 6.668 and 6.469 after the three rounds of each at 10 Mbit/s). They differ in
  the table because their validations lie apart, and their warm-ups differ. The delayed fragments of the first row
  reach the validated model late.
- **Loss at equal time:** local steps lead, at 100 Mbit/s by 0.06 to 0.08 before the direct exchange, and at 10 Mbit/s
  by nearly 0.8 before any synchronous strategy. The model is 700 times smaller than that of the first table, and its
  links are 100 times slower than 10 and 1 Gbit/s there. So its exchanges weigh less.
"""


class Outcome(NamedTuple):
    """A run, simulated or real."""

    seconds: float  # from the first step to the last round's end
    tokens_per_second: float
    bytes_a_token: float  # that the busiest site sends
    curve: list[tuple[int, float, float]]  # tokens of all so far, seconds since the first step, validation loss


Results = dict[tuple[str, str], tuple[Outcome, Outcome]]  # by strategy and rate: simulated and real


def outcome(events: list[dict]) -> Outcome:
    """From its events."""
    steps = [event for event in events if event["event"] == "step"]
    first = min(event["start"] for event in steps)
    ends: dict[int, float] = {}
    sent: dict[str, int] = {}
    for event in events:
        if event["event"] == "round":
            ends[event["round"]] = max(ends.get(event["round"], 0), event["time"] - first)
        elif event["event"] == "sync":
            sent[event["site"]] = sent.get(event["site"], 0) + event["bytes_sent"]
    curve = []
    if any(event["event"] == "evaluation" for event in events):
        for one in validations(events):
            tokens = sum(event["tokens"] for event in steps if event["round"] <= one.round)
            curve.append((tokens, ends.get(one.round, 0.0), one.loss))
    tokens = sum(event["tokens"] for event in steps)
    return Outcome(max(ends.values()), tokens / max(ends.values()), max(sent.values()) / tokens, curve)


class Bench:
    """The four nodes of the simulation as real sites with emulated step times, and their tokens."""

    def __init__(self, binary: str, folder: Path, step_seconds: tuple[float, ...], rtt_seconds: float):
        self.binary, self.rtt_seconds = binary, rtt_seconds
        self.data = folder / "tokens"
        subprocess.run([binary, "tokenize", REPOSITORY / ".deps/corpus/austen", "--output", self.data,
                        "--train-vocabulary", str(MODEL["vocabulary"])], check=True, capture_output=True, timeout=600)
        self.profiles = [site(f"node{number}", seconds) for number, seconds in enumerate(step_seconds, 1)]
        self.sites = []
        for one, seconds in zip(self.profiles, step_seconds):
            path = folder / f"{one['profile']['site']}.json"
            path.write_text(json.dumps(one["profile"]), encoding="utf-8")
            device = {"kind": "cpu", "threads": 1, "emulate": {"sequence_seconds": seconds / 4}}
            self.sites.append({"data": str(self.data), "profile": str(path), "devices": [device]})

    def simulated(self, changes: dict, steps: int, rounds: int, rate: float) -> Outcome:
        """As `farstep simulate` predicts."""
        scenario = {"name": "strategies", "rounds": rounds, "parameters": PARAMETERS, "sequence_length": LENGTH,
                    "plan": {"policy": "hybrid", "base_steps": steps, "base_batch": BATCH}, "sites": self.profiles,
                    "link": {"rtt_seconds": self.rtt_seconds, "bandwidth_bits_per_second": rate}}
        return outcome(simulate(self.binary, scenario | changes)[1])

    def real(self, changes: dict, steps: int, rounds: int, rate: float) -> Outcome:
        """As four processes do it in a lab."""
        run = {"seed": 1, "model": MODEL, "data": {"sequence_length": LENGTH},
               "inner": {"peak_learning_rate": 0.002, "warmup_fraction": min(0.5, 8 / (steps * rounds)),
                         "final_fraction": 1, "compute": "fp32"},
               "outer": {"rounds": rounds, "learning_rate": 0.7, "momentum": 0.5},
               "plan": {"policy": "hybrid", "base_steps": steps, "base_batch": BATCH},
               "evaluate": {"every_rounds": 1, "windows": 64}, "checkpoint": {"every_rounds": 10000}}
        events = train(self.binary, run | changes, self.sites, lab=Lab(rate, self.rtt_seconds), timed=True)
        found = {event["parameters"] for event in events if event["event"] == "run"}
        if found != {PARAMETERS}:
            raise RuntimeError(f"the model has {found} parameters, and the simulation counts {PARAMETERS}")
        return outcome(events)

    def both(self, changes: dict, rate: float) -> tuple[Outcome, Outcome]:
        """Simulated and real, of a length that the simulation tells."""
        sync = changes.get("sync", {})
        if "delay_steps" in sync:
            changes = changes | {"sync": sync | {"delay_steps": DELAY_STEPS}}
        trial = self.simulated(changes, STEPS, LEAST_ROUNDS, rate)
        rounds, steps = round(LEAST_ROUNDS * SECONDS / trial.seconds), STEPS
        if rounds < LEAST_ROUNDS:  # each step has an exchange, and a round may have fewer of them
            rounds, steps = LEAST_ROUNDS, max(2, int(STEPS * SECONDS / trial.seconds))
        return self.simulated(changes, steps, rounds, rate), self.real(changes, steps, rounds, rate)


def loss_at(one: Outcome, axis: int, value: float) -> float:
    """On the line between two validations; `axis` 0 is tokens, 1 seconds."""
    for before, after in zip(one.curve, one.curve[1:]):
        if before[axis] <= value <= after[axis]:
            return before[2] + (value - before[axis]) / (after[axis] - before[axis]) * (after[2] - before[2])
    return math.nan


def measure(binary: str, strategies: tuple, step_seconds: tuple[float, ...], rtt_seconds: float) -> Results:
    """All strategies at all rates, by strategy and rate."""
    results: Results = {}
    with tempfile.TemporaryDirectory(prefix="farstep-strategies-") as folder:
        bench = Bench(binary, Path(folder), step_seconds, rtt_seconds)
        for name, changes in strategies:
            for rate_name, rate in RATES.items():
                simulated, real = results[name, rate_name] = bench.both(changes, rate)
                print(f"{name}, {rate_name}: {simulated.tokens_per_second:.0f} tokens a second simulated,",
                      f"{real.tokens_per_second:.0f} measured", flush=True)
    return results


def page(results: Results, title_of) -> str:
    """Two tables: speed and bytes, and losses."""
    names = list(dict.fromkeys(name for name, _ in results))
    speeds, losses = [], []
    reals = {key: real for key, (_, real) in results.items()}
    tokens = min(reals[name, rate].curve[-1][0] for name in names for rate in list(RATES)[:1])
    start = next(iter(reals.values())).curve[0][2]
    seconds = min(real.curve[-1][1] for real in reals.values())
    for name in names:
        title = title_of(re.sub(r"delay \d+", f"delay {DELAY_STEPS}", name))  # rounds are shorter here
        row = [title]
        for rate in RATES:
            simulated, real = results[name, rate]
            row += [f"{simulated.tokens_per_second:,.0f}", f"{real.tokens_per_second:,.0f}",
                    f"{100 * (real.tokens_per_second / simulated.tokens_per_second - 1):+.0f} %"]
        simulated, real = results[name, next(iter(RATES))]
        speeds.append(row + [f"{simulated.bytes_a_token:,.1f}", f"{real.bytes_a_token:,.1f}"])
        losses.append([title, f"{loss_at(reals[name, next(iter(RATES))], 0, tokens):.3f}",
                       *(f"{loss_at(reals[name, rate], 1, seconds):.3f}" for rate in RATES)])
    head = ["strategy"]
    for rate in RATES:
        head += [f"{rate}: simulated", "measured", "measured differs by"]
    return (INTRODUCTION + table([*head, "bytes a token: simulated", "measured"], speeds)
            + f"\nValidation loss of the real runs, from {start:.3f}, on the line between two validations:\n\n"
            + table(["strategy", f"after {tokens:,} tokens", *(f"after {seconds:.1f} s at {rate}" for rate in RATES)],
                    losses) + NOTES)
