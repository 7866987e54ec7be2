"""Real runs of several sites on this machine, for experiments: their configs, their start, and their events."""

import json
import os
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from experiment import REPOSITORY

# So that other work of the machine hardly changes the times; root alone may. Where sites share cores, one that computes
# with real-time priority would keep others from its core for a tenth of a second. A lab's router computes briefly.
REAL_TIME, FIRST = (("chrt", "--rr", "1"), ("nice", "-n", "-20")) if os.geteuid() == 0 else ((), ())
IMAGES = Path("/usr/share/datasets/fashion-mnist")  # Debian's dataset-fashion-mnist


class Lab(NamedTuple):
    """Links between the sites; without a lab they have the loopback interface."""

    rate_bits_per_second: float
    rtt_seconds: float


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_configs(folder: Path, run: dict, sites: list[dict]):
    """Run file and site configs: each site on loopback, with one thread unless `sites` says otherwise."""
    names = [f"node{number}" for number in range(1, len(sites) + 1)]
    run = {"name": "experiment", "sites": [{"name": name} for name in names]} | run
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    port = free_port()
    for name, own in zip(names, sites):
        config = {"name": name, "run": "run.json", "network": {"address": "127.0.0.1"}, "output": "out",
                  "coordinator": {"endpoint": f"tcp://127.0.0.1:{port}", "host": name == names[0]},
                  "devices": [{"kind": "cpu", "threads": 1}], "cpu": {"products": "first"}} | own
        (folder / f"{name}.json").write_text(json.dumps(config), encoding="utf-8")


def train(binary: str, run: dict, sites: list[dict], *, lab: Lab | None = None,
          timed: bool = False, timeout: float = 3600) -> list[dict]:
    """The events of a run at these sites, all sites' together. `timed` gives it priority over other work."""
    with tempfile.TemporaryDirectory(prefix="farstep-run-") as temporary:
        folder = Path(temporary) / "run"
        folder.mkdir()
        write_configs(folder, run, sites)
        priority = FIRST if lab or len(sites) > os.cpu_count() else REAL_TIME
        command = [*(priority if timed else ()), str(binary), "launch", str(folder)]
        if lab:
            own = Path(temporary) / "lab"
            command = [*REAL_TIME, str(REPOSITORY / "scripts/wan_lab"), "run", "--sites", str(len(sites)),
                       "--rate", f"{lab.rate_bits_per_second:.0f}", "--rtt", f"{1000 * lab.rtt_seconds:.0f}ms",
                       "--folder", str(own), "--", "chrt", "--other", "0", *command, "--lab", str(own / "lab.json")]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
        return [json.loads(line) for path in sorted((folder / "out").glob("*/events.jsonl"))
                for line in path.read_text(encoding="utf-8").splitlines()]


def step_periods(events: list[dict], site: str = "node1") -> list[float]:
    """Seconds from the start of each step of a site to the next one's in the same round."""
    steps = [event for event in events if event["event"] == "step" and event["site"] == site]
    return [after["start"] - before["start"] for before, after in zip(steps, steps[1:])
            if before["round"] == after["round"]]


class Validation(NamedTuple):
    """A validation of the global model, by all sites together."""

    round: int
    loss: float
    accuracy: float  # 0 if the model does not count hits


def validations(events: list[dict]) -> list[Validation]:
    """Of a run, in the order of their rounds."""
    parts: dict[int, list[dict]] = {}
    for event in events:
        if event["event"] == "evaluation":
            parts.setdefault(event["round"], []).append(event)
    found = []
    for number in sorted(parts):
        count = sum(part["tokens"] for part in parts[number])
        found.append(Validation(number, sum(part["loss_sum"] for part in parts[number]) / count,
                                sum(part["hits"] or 0 for part in parts[number]) / count))
    return found
