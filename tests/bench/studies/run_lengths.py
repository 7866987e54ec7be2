"""Which outer settings fit a run of so many rounds?"""

import statistics
from collections.abc import Iterator

from studies.runs import Bench, Run, equal_run

SETTINGS = ((0.7, 0.9), (1.0, 0.7), (0.7, 0.5), (1.0, 0.5), (1.0, 0.9), (1.0, 0.0), (0.7, 0.3))
# Rounds, H, whether from the warm start, seeds.
LENGTHS = ((10, 20, False, 2), (10, 20, True, 2), (100, 5, False, 2), (100, 5, True, 2),
           (1000, 2, False, 1))


def length_run(seed: int, rounds: int, steps: int, warm: bool, setting: tuple) -> Run:
    """Four equal sites for so many rounds."""
    return equal_run(seed, steps, *setting, total=rounds * steps, warm=warm)


def lengths(seeds: list[int]) -> Iterator[Run]:
    """Every setting at every length, the short runs first."""
    for rounds, steps, warm, count in LENGTHS:
        for seed in seeds[:count]:
            for setting in SETTINGS:
                yield length_run(seed, rounds, steps, warm, setting)


def length_table(bench: Bench, seeds: list[int]) -> str:
    """Markdown: a row a length, a column a setting; the best is bold."""
    names = " | ".join(f"{eta} / {mu}" for eta, mu in SETTINGS)
    lines = [f"| rounds | H | begins from | seeds | {names} |", "|" + "---|" * (4 + len(SETTINGS))]
    for rounds, steps, warm, count in LENGTHS:
        of_setting = [[loss for seed in seeds[:count] if
                       (loss := bench.loss(length_run(seed, rounds, steps, warm, setting)))]
                      for setting in SETTINGS]
        if not all(of_setting):
            continue
        means = [statistics.mean(losses) for losses in of_setting]
        cells = [f"**{mean:.4f}**" if mean == min(means) else f"{mean:.4f}" for mean in means]
        lines.append(f"| {rounds} | {steps} | {'warm start' if warm else 'scratch'} | {count} | "
                     + " | ".join(cells) + " |")
    return "\n".join(lines)
