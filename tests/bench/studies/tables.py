"""What tables of losses are made of."""

import statistics
from collections.abc import Callable

from studies.runs import Bench, Run


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
