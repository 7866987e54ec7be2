"""Every strategy in real runs over the links of a lab, beside the simulation of the same runs."""

import json
import math
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from experiment import REPOSITORY, simulate, site, source, source_line, table, wrap
from findings import AS_ABOVE, WITHIN, bullets, names, span, verdict
from real_run import Lab, train, validations

RATES = {"100 Mbit/s": 1e8, "10 Mbit/s": 1e7}
MODEL = {"preset": "tiny", "vocabulary": 1024, "hidden": 96, "intermediate": 256, "layers": 2, "heads": 4,
         "kv_heads": 2}
PARAMETERS, LENGTH, BATCH = 301_536, 128, 4
STEPS, DELAY_STEPS, LEAST_ROUNDS = 10, 2, 3
SECONDS = 15.0  # about how long a run trains
ALIKE_BYTES = 0.05  # of the simulated bytes, for measured ones that agree


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


def measure(binary: str, strategies: tuple, step_seconds: tuple[float, ...], rtt_seconds: float) -> dict:
    """The record of all strategies at all rates."""
    results: Results = {}
    of = source()
    with tempfile.TemporaryDirectory(prefix="farstep-strategies-") as folder:
        bench = Bench(binary, Path(folder), step_seconds, rtt_seconds)
        for name, changes in strategies:
            for rate_name, rate in RATES.items():
                simulated, real = results[name, rate_name] = bench.both(changes, rate)
                print(f"{name}, {rate_name}: {simulated.tokens_per_second:.0f} tokens a second simulated,",
                      f"{real.tokens_per_second:.0f} measured", flush=True)
    return {"source": of} | summary(results)


def summary(results: Results) -> dict:
    """The record without its source: speed and bytes of each pair of runs, and losses that can be compared."""
    names, first_rate = list(dict.fromkeys(name for name, _ in results)), next(iter(RATES))
    reals = {key: real for key, (_, real) in results.items()}
    tokens = min(reals[name, first_rate].curve[-1][0] for name in names)
    seconds = min(real.curve[-1][1] for real in reals.values())
    rows = []
    for name in names:
        row: dict = {"strategy": name, "loss_at_tokens": round(loss_at(reals[name, first_rate], 0, tokens), 4)}
        row["loss_at_seconds"] = {rate: round(loss_at(reals[name, rate], 1, seconds), 4) for rate in RATES}
        for kind, place in (("simulated", 0), ("measured", 1)):
            row[f"{kind}_tokens_per_second"] = {rate: round(results[name, rate][place].tokens_per_second, 1)
                                                for rate in RATES}
            row[f"{kind}_bytes_a_token"] = round(results[name, first_rate][place].bytes_a_token, 2)
        rows.append(row)
    return {"tokens": tokens, "seconds": round(seconds, 2), "rows": rows,
            "start_loss": round(next(iter(reals.values())).curve[0][2], 4)}


def miss(row: dict, rate: str) -> float:
    """By how many percent a real run is faster than simulated."""
    return 100 * (row["measured_tokens_per_second"][rate] / row["simulated_tokens_per_second"][rate] - 1)


def is_local(row: dict) -> bool:
    """Whether its sites train alone for many steps."""
    return row["strategy"].startswith(("low_communication", "local_sgd"))


def side(name: str, misses: dict[tuple[str, str], float], strategies: bool = False) -> str:
    """How many runs are slower, or faster, than simulated, and by how much."""
    if not misses:
        return f"{name} than simulated: none."
    text = f"{name} than simulated: {len(misses)}, by {span([abs(one) for one in misses.values()], '{:.0f}')} %"
    if strategies:
        text += f": {names(list(dict.fromkeys(title(strategy) for strategy, _ in misses)))}"
    return text + "."


def speed_findings(rows: list[dict]) -> list[str]:
    """How near the simulation is, and whether it knows who is the fastest."""
    misses = {(row["strategy"], rate): miss(row, rate) for row in rows for rate in RATES}
    good = sum(abs(one) <= 100 * WITHIN for one in misses.values())
    slower, faster = ({key: one for key, one in misses.items() if one * sign > 0} for sign in (-1, 1))
    least = min(misses, key=lambda key: abs(misses[key]))
    ratios = [row["measured_bytes_a_token"] / row["simulated_bytes_a_token"] for row in rows]
    sentences = [f"{good} of {len(misses)} speeds are within {100 * WITHIN:.0f} % of the simulated ones: the "
                 f"simulation {verdict(good == len(misses))}.",
                 side("Slower", slower), side("Faster", faster, strategies=True),
                 f"Nearest to its simulation is {title(least[0])} at {least[1]}: {misses[least]:+.0f} %.",
                 f"Measured bytes are {span(ratios)} times the simulated ones (bound: {100 * ALIKE_BYTES:.0f} %): "
                 + verdict(all(abs(one - 1) <= ALIKE_BYTES for one in ratios)) + "."]
    for rate in RATES:
        fastest, expected = (max(rows, key=lambda row, kind=kind: row[f"{kind}_tokens_per_second"][rate])
                             for kind in ("measured", "simulated"))
        sentences.append(f"At {rate} the fastest is {title(fastest['strategy'])}, "
                         f"{'as' if fastest is expected else '**not** as'} simulated.")
    return sentences


def loss_findings(rows: list[dict]) -> list[str]:
    """Local steps against steps together, at equal tokens and at equal time."""
    local, together = ([row for row in rows if is_local(row) == wanted] for wanted in (True, False))
    best_local, best_together = (min(row["loss_at_tokens"] for row in part) for part in (local, together))
    sentences = [f"At equal tokens the least loss of local steps is {best_local:.3f}, and of steps together "
                 f"{best_together:.3f}."]
    for rate in RATES:
        alone, shared = ([row["loss_at_seconds"][rate] for row in part] for part in (local, together))
        lead = min(shared) - max(alone)
        sentences.append(f"At equal time and {rate} the losses of local steps are {span(alone, '{:.3f}')}, of steps "
                         f"together {span(shared, '{:.3f}')}: "
                         + (f"local steps lead, by {lead:.3f} at least." if lead > 0 else "not all local steps lead."))
    return sentences


def title(name: str) -> str:
    """The strategy's name in a table, its kind as code. Rounds are shorter here than in the first table."""
    kind, comma, details = re.sub(r"delay \d+", f"delay {DELAY_STEPS}", name).partition(",")
    return f"`{kind}`{comma}{details}"


def page(record: dict) -> str:
    """Two tables: speed and bytes, and losses."""
    speeds, losses = [], []
    for row in record["rows"]:
        line = [title(row["strategy"])]
        for rate in RATES:
            line += [*(f"{row[f'{kind}_tokens_per_second'][rate]:,.0f}" for kind in ("simulated", "measured")),
                     f"{miss(row, rate):+.0f} %"]
        speeds.append(line + [f"{row[f'{kind}_bytes_a_token']:,.1f}" for kind in ("simulated", "measured")])
        losses.append([line[0], f"{row['loss_at_tokens']:.3f}",
                       *(f"{row['loss_at_seconds'][rate]:.3f}" for rate in RATES)])
    head = ["strategy"]
    for rate in RATES:
        head += [f"{rate}: simulated", "measured", "measured differs by"]
    return ("\n## Real runs beside their simulation\n\n"
            + wrap(f"Four processes in a lab train a model of {PARAMETERS:,} parameters with sequences of {LENGTH}. "
                   f"Their devices emulate the step times of the four nodes. A round has {STEPS} steps of the slowest "
                   f"node, and a delay is {DELAY_STEPS} of them. Strategies that exchange in every step have fewer "
                   f"where a run would take much longer than {SECONDS:.0f} s. Tokens a second of the four sites "
                   "together, one run each, with priority over other work. [What may explain the "
                   "differences](explanations.md#strategies-in-a-lab).") + "\n"
            + source_line(record["source"])
            + table([*head, "bytes a token: simulated", "measured"], speeds)
            + f"\nValidation loss of the real runs, from {record['start_loss']:.3f}, on the line between two "
            "validations:\n\n" + AS_ABOVE
            + table(["strategy", f"after {record['tokens']:,} tokens",
                     *(f"after {record['seconds']:.1f} s at {rate}" for rate in RATES)], losses)
            + "\n" + bullets(speed_findings(record["rows"]) + loss_findings(record["rows"])))
