"""The processes of a storm: sites, their supervisor, and the coordinator; in a lab, or on the loopback interface.

Every process is asked by the kernel to end with this program, whatever ends that.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))

from cluster import DATA, FARSTEP, Cluster, by_event, free_port  # noqa: E402  pylint: disable=wrong-import-position
from lab import Lab, obstacle  # noqa: E402  pylint: disable=wrong-import-position
from ports import endpoint_of  # noqa: E402  pylint: disable=wrong-import-position

COORDINATOR = "coordinator"
LOOK_SECONDS = 0.2
RESTART_SECONDS = 5.0  # after a site's own end, as a supervisor does it
MENDED_BY_RESTART = 4
INTERRUPTED = 130
END_SECONDS = 120.0  # within which a site saves and leaves
FIRST_ROUND_SECONDS = 300.0
LAB_RATE = "1G"
__all__ = ["DATA", "Party", "identity_of_binary", "obstacle"]
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1

# The default deadlines, which those of the tests would replace.
DEADLINES = {"join_seconds": 300, "heartbeat_seconds": 1, "lost_after_seconds": 45, "pause_seconds": 600}


def end_with_parent():
    """Called in a new process: it gets SIGKILL when this program ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Site:
    """A site's process, which is started again when it ends."""

    def __init__(self, name: str, command: list[str], log: Path):
        self.name, self.command, self.log = name, command, log
        self.process: subprocess.Popen | None = None
        self.restart_at: float | None = None
        self.kills: list[float] = []  # unix seconds
        self.ends: list[int] = []     # codes of processes that ended by themselves

    def start(self):
        """Starts its process, from its newest checkpoint if it has one."""
        self.restart_at = None
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, preexec_fn=end_with_parent)

    def look(self):
        """Notes an end, and starts it again when that is due and helps."""
        if self.process is None:
            if self.restart_at is not None and time.monotonic() >= self.restart_at:
                self.start()
        elif (code := self.process.poll()) is not None:
            self.ends.append(code)
            self.process = None
            self.restart_at = time.monotonic() + RESTART_SECONDS if code == MENDED_BY_RESTART else None

    def kill(self, restart_seconds: float):
        """Kills its process, which is started again after so long."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.kills.append(time.time())
        self.process = None
        self.restart_at = time.monotonic() + restart_seconds

    def send(self, number: signal.Signals):
        """Sends a signal, if there is a process."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def memory_bytes(self) -> int:
        """What its process has of the machine's memory; of what several share, its part."""
        if self.process is None:
            return 0
        try:
            lines = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:  # it has ended
            return 0
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


class Party:
    """All processes of a run. `has_lab`: each site is in a network namespace, whose line can be cut."""

    def __init__(self, folder: Path, num_sites: int, run: dict, step_seconds: float, *, secure: bool, hosts: bool,
                 has_lab: bool, lab_options: tuple[str, ...] = ("--rate", LAB_RATE)):
        self.lab = None
        self.sites: list[Site] = []
        self.coordinator: Site | None = None
        port = free_port()
        try:
            if has_lab:
                # The last one is the coordinator's.
                self.lab = Lab(folder / "lab", "--sites", str(num_sites + 1), *lab_options,
                               preexec_fn=end_with_parent)
            endpoint = endpoint_of(self.address(0 if hosts else num_sites), port)
            device = {"kind": "cpu", "threads": 1, "emulate": {"step_seconds": step_seconds}}
            configs = {place: {"network": {"address": self.address(place)}, "devices": [device],
                               "coordinator": {"endpoint": endpoint, "host": hosts and place == 0}}
                       for place in range(num_sites)}
            self.cluster = Cluster(folder, num_sites, run | {"deadlines": DEADLINES}, configs, secure, port)
            for place, name in enumerate(self.cluster.names):
                self.sites.append(Site(name, self.command(place, "train", "--config", folder / f"{name}.json",
                                                          "--resume=auto"), folder / f"{name}.txt"))
            if not hosts:
                config = self.cluster.write_coordinator_config(output=COORDINATOR, endpoint=endpoint)
                self.coordinator = Site(COORDINATOR, self.command(num_sites, COORDINATOR, "--config", config),
                                        folder / f"{COORDINATOR}.txt")
        except BaseException:
            self.close()
            raise

    def address(self, place: int) -> str:
        """Of a site, or of the coordinator after them."""
        return self.lab.addresses[place] if self.lab else "127.0.0.1"

    def command(self, place: int, *words: object) -> list[str]:
        """A command of Farstep there."""
        if self.lab:
            return self.lab.command(place + 1, FARSTEP, *words)
        return [str(FARSTEP), *map(str, words)]

    def all(self) -> list[Site]:
        """The processes, the coordinator first."""
        return ([self.coordinator] if self.coordinator else []) + self.sites

    def site(self, name: str) -> Site:
        """By its name."""
        return next(site for site in self.sites if site.name == name)

    def look(self):
        """Notes what has ended, and starts again what is due."""
        for one in self.all():
            one.look()

    def cut(self, name: str, is_cut: bool):
        """Cuts or heals a site's line: packets are dropped."""
        self.lab.control("cut" if is_cut else "heal", self.cluster.names.index(name) + 1)

    def wait(self, condition, seconds: float) -> bool:
        """Looks after the processes until the condition holds; whether it did within so long."""
        deadline = time.monotonic() + seconds
        while not (holds := condition()) and time.monotonic() < deadline:
            self.look()
            time.sleep(LOOK_SECONDS)  # a pause between two looks at other processes
        return holds

    def start(self):
        """Starts all, and waits until each has done a round; returns the time of that."""
        for one in self.all():
            one.start()
        if not self.wait(lambda: all(by_event(self.cluster, name, "round") for name in self.cluster.names),
                         FIRST_ROUND_SECONDS):
            raise AssertionError(f"not all sites did a round within {FIRST_ROUND_SECONDS:.0f} s: --folder keeps the logs")
        return time.time()

    def records(self) -> dict[str, list[dict]]:
        """What each site has recorded."""
        return {name: self.cluster.events(name) for name in self.cluster.names}

    def memory_bytes(self) -> int:
        """Of all processes."""
        return sum(one.memory_bytes() for one in self.all())

    def interrupt(self) -> list[str]:
        """Ends all in good order; returns what ended otherwise, now or before."""
        for site in self.sites:
            site.restart_at = None
            site.send(signal.SIGINT)
        wrong = []
        deadline = time.monotonic() + END_SECONDS
        for one in reversed(self.all()):  # the coordinator last
            if one is self.coordinator:
                one.send(signal.SIGINT)
            wrong += [f"{one.name} {code}" for code in one.ends]
            if one.process is None:
                continue
            try:
                code = one.process.wait(max(deadline - time.monotonic(), 1))
            except subprocess.TimeoutExpired:
                wrong.append(f"{one.name} hangs")
                continue
            # The coordinator may have seen the sites leave, which is the end of its run.
            if code != INTERRUPTED and not (one is self.coordinator and code in (0, MENDED_BY_RESTART)):
                wrong.append(f"{one.name} {code}")
        return wrong

    def close(self):
        """Ends everything at once."""
        for one in self.all():
            if one.process is not None:
                one.process.kill()
                one.process.wait()
        if self.lab:
            self.lab.close()


def identity_of_binary() -> str:
    """Changes with the build that is measured."""
    parts = []
    for program in (FARSTEP, FARSTEP.with_name("farstep-torch")):
        status = os.stat(program)
        parts.append(f"{program} {status.st_size} {status.st_mtime_ns}")
    return ", ".join(parts)
