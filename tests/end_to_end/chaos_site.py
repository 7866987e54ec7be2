"""A site of chaos.py: its process, its disk and clock, and what it has recorded."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from cluster import FARSTEP, Cluster

CLOCK_LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
DISK_BYTES = 64 << 20
MOST_FILES = 200
MOST_GROWTH = 1.5  # of a process's memory after its first rounds


class Violation(Exception):
    """The run is not as it must be."""


def can_mount() -> bool:
    """Whether this process may mount a disk in a mount namespace of its own."""
    return os.environ.get("CHAOS_MOUNTS") == "1"


def take_mount_namespace():
    """Begins this program anew in a mount namespace of its own, if it may."""
    if can_mount() or os.geteuid() != 0 or not shutil.which("unshare"):
        return
    command = ["unshare", "--mount", sys.executable, *sys.argv]
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0:
        os.execvpe(command[0], command, os.environ | {"CHAOS_MOUNTS": "1"})


class Disk:
    """A small disk of a site's own, for its checkpoints."""

    def __init__(self, folder: Path):
        self.filler = folder / "filler"
        self.full_until: float | None = None
        folder.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder],
                       check=True)

    def fill(self, until: float):
        """Leaves no byte free."""
        self.full_until = until
        with open(self.filler, "wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def clear(self):
        """Frees what was filled."""
        self.full_until = None
        self.filler.unlink(missing_ok=True)


class Site:
    """A site's process and what it has recorded so far."""

    def __init__(self, cluster: Cluster, name: str):
        self.cluster, self.name = cluster, name
        self.disk = Disk(cluster.output / name / "checkpoints") if can_mount() else None
        self.clock = cluster.folder / f"{name}.clock"  # how wrong its clock is
        self.clock.write_text("+0", encoding="utf-8")
        self.environment = dict(os.environ)
        if CLOCK_LIBRARY:
            self.environment |= {"LD_PRELOAD": str(CLOCK_LIBRARY), "FAKETIME_NO_CACHE": "1",
                                 "FAKETIME_TIMESTAMP_FILE": str(self.clock),
                                 "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        self.offset = 0
        self.rounds: dict[int, dict] = {}  # the newest event of each
        self.steps: dict[int, int] = {}    # number of steps by round
        self.seen_steps: set[tuple[int, int]] = set()
        self.starts = 0
        self.wakes_at: float | None = None
        self.start()

    def start(self):
        """Starts its process as a supervisor does."""
        with open(self.cluster.folder / f"{self.name}.{self.starts}.txt", "w",
                  encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [str(FARSTEP), "train", "--config",
                 str(self.cluster.folder / f"{self.name}.json"), "--resume=auto"],
                stdout=log, stderr=log, env=self.environment)
        self.starts += 1
        self.is_ending = False  # by a fault that its process cannot survive
        self.was_full = self.disk is not None and self.disk.full_until is not None
        self.rounds_at_start = len(self.rounds)
        self.first_memory = None

    def log(self) -> str:
        """The end of what its newest process printed."""
        path = self.cluster.folder / f"{self.name}.{self.starts - 1}.txt"
        return path.read_text(encoding="utf-8", errors="replace")[-3000:]

    def is_healthy(self) -> bool:
        """Whether its present process has trained a round."""
        return (self.process.poll() is None and self.wakes_at is None and not self.is_ending
                and len(self.rounds) > self.rounds_at_start)

    def read_events(self):
        """Takes in what the site has recorded since the last call."""
        path = self.cluster.output / self.name / "events.jsonl"
        if not path.exists():
            return
        with open(path, "rb") as file:
            file.seek(self.offset)
            text = file.read()
        end = text.rfind(b"\n") + 1
        self.offset += end
        for line in text[:end].split(b"\n"):
            if not line:
                continue
            try:
                event = json.loads(line)
            except ValueError:  # a line that a killed process left unfinished
                continue
            if event["event"] == "step":
                step = (event["round"], event["step"])
                if step in self.seen_steps:
                    raise Violation(f"{self.name} did step {step} twice")
                self.seen_steps.add(step)
                self.steps[event["round"]] = self.steps.get(event["round"], 0) + 1
            elif event["event"] == "round":
                newest = max(self.rounds, default=0)
                if event["round"] <= newest:
                    raise Violation(f"{self.name} did round {event['round']} after {newest}")
                self.rounds[event["round"]] = event

    def check_process(self):
        """Memory and file descriptors of its process stay flat."""
        proc = Path(f"/proc/{self.process.pid}")
        try:
            pages = int((proc / "statm").read_text(encoding="ascii").split()[1])
            files = len(list((proc / "fd").iterdir()))
        except (OSError, IndexError):  # it has ended
            return
        if files > MOST_FILES:
            raise Violation(f"{self.name} has {files} open files")
        if len(self.rounds) < self.rounds_at_start + 10:
            return
        if self.first_memory is None:
            self.first_memory = pages
        elif pages > MOST_GROWTH * self.first_memory:
            raise Violation(f"{self.name} grew from {self.first_memory} to {pages} pages")
