"""The figures of a storm, from the records of its sites (docs/events.md). Pure.

`records` are the sites' records by name, in the order in which they were written. Times are unix seconds: all
sites are on one machine.
"""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

Records = dict[str, list[dict]]


@dataclass
class Commit:
    """A committed round: when the first site recorded it, and which sites' steps it has."""

    at: float
    steps: dict[str, int] = field(default_factory=dict)  # by site


@dataclass(frozen=True)
class Return:
    """A killed site's way back, in seconds after the kill; None: not before the end, or the next kill."""

    site: str
    first_step: float | None
    first_commit: float | None


def events(records: Records, kind: str) -> Iterable[tuple[str, dict]]:
    """Each site's records of a kind."""
    return ((site, record) for site, written in records.items() for record in written if record["event"] == kind)


def contributes(record: dict) -> bool:
    """Whether a record of a round is of a site whose steps are in it."""
    return record["averaging_weight"] > 0 and record["local_steps"] > 0


def commits(records: Records, begin: float, end: float) -> list[Commit]:
    """The rounds that were committed after `begin`, until `end`, in order."""
    found: dict[int, Commit] = {}
    for site, record in events(records, "round"):
        commit = found.setdefault(record["round"], Commit(record["time"]))
        commit.at = min(commit.at, record["time"])
        if contributes(record):
            commit.steps[site] = record["local_steps"]
    return sorted((commit for commit in found.values() if begin < commit.at <= end), key=lambda commit: commit.at)


def seconds_a_round(found: list[Commit]) -> float:
    """The mean time from one commit to the next."""
    if len(found) < 2:
        raise ValueError(f"{len(found)} rounds were committed; two are needed to measure one")
    return (found[-1].at - found[0].at) / (len(found) - 1)


def returns(records: Records, kills: list[tuple[str, float]]) -> list[Return]:
    """How each killed site came back, in the order of the kills."""
    found = []
    for place, (site, killed) in enumerate(kills):
        next_kill = min((at for other, at in kills[place + 1:] if other == site), default=float("inf"))

        def first(times: Iterable[float], killed=killed, next_kill=next_kill) -> float | None:
            return next((at - killed for at in times if killed < at < next_kill), None)

        own = records.get(site, [])
        found.append(Return(
            site, first(record["time"] for record in own if record["event"] == "step"),
            first(record["time"] for record in own if record["event"] == "round" and contributes(record))))
    return found


def differing_rounds(records: Records) -> list[int]:
    """The rounds after which two sites had another theta_global."""
    hashes: dict[int, set[str]] = {}
    for _, record in events(records, "round"):
        hashes.setdefault(record["round"], set()).add(record["theta_hash"])
    return sorted(number for number, found in hashes.items() if len(found) > 1)


def new_generations(records: Records, begin: float, end: float) -> int:
    """How many generations of the membership began in that time, by what the sites recorded of them."""
    seen = [(record["time"], record["generation"]) for kind in ("run", "view", "round")
            for _, record in events(records, kind)]
    before = max((generation for at, generation in seen if at <= begin), default=1)
    return max((generation for at, generation in seen if at <= end), default=before) - before


def spread(values: Iterable[float | None]) -> str:
    """Median, least and most; a value of None is left out."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    return f"{statistics.median(known):.0f} ({min(known):.0f}-{max(known):.0f})"


@dataclass
class Storm:
    """What the table says of a storm."""

    records: Records
    begin: float
    end: float
    kills: list[tuple[str, float]]  # site and time
    round_seconds: float            # without faults
    step_seconds: float
    round_steps: int

    def columns(self) -> dict[str, str]:
        """The figures, by their columns."""
        found = commits(self.records, self.begin, self.end)
        seconds = self.end - self.begin
        fault_free = seconds / self.round_seconds
        parts = [len(commit.steps) for commit in found]
        counted = sum(sum(commit.steps.values()) for commit in found)
        sites = len(self.records)
        back = returns(self.records, self.kills)
        return {
            "a round without faults (s)": f"{self.round_seconds:.1f}",
            "commits": str(len(found)),
            "of the fault-free (%)": f"{100 * len(found) / fault_free:.1f}",
            "take part: mean, min": f"{statistics.mean(parts):.1f}, {min(parts)}" if parts else "-",
            "kill to first step: median (min-max) (s)": spread(one.first_step for one in back),
            "kill to first commit (s)": spread(one.first_commit for one in back),
            "not back": str(sum(one.first_commit is None for one in back)),
            "steps that count, of the fault-free (%)":
                f"{100 * counted / (fault_free * sites * self.round_steps):.1f}",
            "of the possible (%)": f"{100 * counted * self.step_seconds / (seconds * sites):.1f}",
            "hash differences": str(len(differing_rounds(self.records))),
            "new generations": str(new_generations(self.records, self.begin, self.end)),
        }


def table(columns: dict[str, str]) -> str:
    """A table of one row."""
    lines = (columns.keys(), ["---"] * len(columns), columns.values())
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
