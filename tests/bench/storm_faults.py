"""The faults of a storm, drawn from a seed before it begins. Pure."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

KILL, CUT, STOP = "kill", "cut", "stop"
# How long each lasts: until the restart, until the line heals, until SIGCONT.
SECONDS = {KILL: (5.0, 5.0), CUT: (10.0, 40.0), STOP: (5.0, 60.0)}
# A site is left alone for so long after a fault, so that it has time to be back.
QUIET_SECONDS = 60.0


@dataclass(frozen=True)
class Fault:
    """What happens to a site, from `at` seconds after the storm's beginning on."""

    at: float
    kind: str
    site: str
    seconds: float

    @property
    def end(self) -> float:
        """When it is over."""
        return self.at + self.seconds

    def __str__(self) -> str:
        return f"{self.at:6.1f} s: {self.kind} {self.site} for {self.seconds:.1f} s"


def draw(seed: int, seconds: float, sites: Iterable[str], mean_pauses: dict[str, float]) -> list[Fault]:
    """The faults of a storm that lasts so long, in order.

    Each kind comes by chance alone, with this mean time between two of it; 0: never. Its times and lengths do
    not depend on the other kinds. A fault with no site left for it does not happen: one healthy site is spared.
    """
    drawn = []
    for kind, pause in mean_pauses.items():
        chance = random.Random(f"{seed} {kind}")
        at = 0.0
        while pause and (at := at + chance.expovariate(1 / pause)) < seconds:
            drawn.append((at, kind, chance.uniform(*SECONDS[kind]), chance.random()))
    faults: list[Fault] = []
    quiet_until = dict.fromkeys(sites, 0.0)
    for at, kind, length, place in sorted(drawn):
        harmed = {fault.site for fault in faults if fault.end > at}
        victims = [site for site, until in quiet_until.items() if until <= at]
        if not victims or len(harmed) + 1 >= len(quiet_until):
            continue
        fault = Fault(at, kind, victims[int(place * len(victims))], length)
        quiet_until[fault.site] = fault.end + QUIET_SECONDS
        faults.append(fault)
    return faults
