"""Which rule of averaging learns best from sites with unequal work?"""

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator

from studies.runs import Bench, Run
from studies.tables import paired, spread

LONG_ROUNDS = 32
FIRST_ROUNDS = 8

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


def long_run(seed: int, condition: str, rule: str, eta: float, mu: float = 0.9,
             **changes: object) -> Run:
    """Many rounds from the warm start, of sites with the condition's work."""
    return Run("long", seed, CONDITIONS[condition], LONG_ROUNDS,
               {"learning_rate": eta, "momentum": mu, "averaging": rule}, **changes)


def first_rounds(seed: int, condition: str, rule: str, eta: float, mu: float) -> Run:
    """A few rounds from scratch."""
    return Run("first rounds", seed, CONDITIONS[condition], FIRST_ROUNDS,
               {"learning_rate": eta, "momentum": mu, "averaging": rule}, warm=False)


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
