"""Times and rates in tests. Other users of the machine make one miss its bounds now and then, a defect
each time; so that alone is measured again."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cluster import ClusterTest

MOST_TRIES = 3


@dataclass(frozen=True)
class Figure:
    """A time, a rate or a share of time that was measured, and its bounds."""
    what: str
    value: float
    at_least: float = -math.inf
    at_most: float = math.inf

    def is_in_bounds(self) -> bool:
        """Whether it is as it must be; not a number is not."""
        return self.at_least <= self.value <= self.at_most

    def __str__(self) -> str:
        told = "" if self.is_in_bounds() else f", not from {self.at_least:.6g} to {self.at_most:.6g}"
        return f"{self.what}: {self.value:.6g}{told}"


def near(what: str, value: float, wanted: float, delta: float) -> Figure:
    """A figure that differs by at most `delta` from the wanted value."""
    return Figure(what, value, wanted - delta, wanted + delta)


def within_tries(test: ClusterTest, trial: Callable[[], Iterable[Figure]]):
    """Runs `trial` in a new folder up to three times, until all figures that it returns are in bounds.

    The trial itself checks whatever is not a figure: what it raises ends the test at once.
    """
    told = []
    for number in range(1, MOST_TRIES + 1):
        test.take_new_folder()
        figures = list(trial())
        test.assertTrue(figures, "a trial must measure something")
        told.append(f"trial {number}:\n  " + "\n  ".join(map(str, figures)))
        print(told[-1], flush=True)
        if all(figure.is_in_bounds() for figure in figures):
            return
    test.fail(f"out of bounds {MOST_TRIES} times:\n" + "\n".join(told))
