"""Sets up runs of real `farstep` processes for the end-to-end tests. Standard library only."""

import contextlib
import ctypes
import json
import os
import signal
import socket
import stat
import subprocess
import tempfile
import sys
import time
import unittest
import zlib
from collections.abc import Callable
from pathlib import Path

from ports import endpoint_of, free_port  # noqa: F401 (tests take the latter from here)

REPOSITORY = Path(__file__).resolve().parents[2]
RELEASE = REPOSITORY / "build" / "release"
FARSTEP = Path(os.environ.get("FARSTEP_BINARY", RELEASE / "farstep")).resolve()
DATA = Path(os.environ.get("FARSTEP_TEST_DATA", RELEASE / "end_to_end_data")).resolve()
# Whether the sites of all tests have keys, and so secure links; None: those of a third of the tests.
FORCED_SECURE = {"1": True, "0": False}.get(os.environ.get("FARSTEP_TEST_SECURE", ""))

# How long something may take that must happen, on a machine with other work.
PATIENCE_SECONDS = 120
# Deadlines by which a frozen site is soon missed, and one that a busy machine keeps waiting is not.
WATCHFUL = {"lost_after_seconds": 6}
# Deadlines by which no test sees the loss of a site that is only silent.
UNENDING = {"lost_after_seconds": 2 * PATIENCE_SECONDS, "transfer_stall_seconds": 3 * PATIENCE_SECONDS}


def farstep(*arguments: object, timeout: float = 2 * PATIENCE_SECONDS) -> subprocess.CompletedProcess:
    """Runs a farstep command to its end."""
    return subprocess.run([str(FARSTEP), *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, check=False)


def merge(base: dict, changes: dict) -> dict:
    """`base` with `changes` put over it, objects member by member."""
    merged = dict(base)
    for key, value in changes.items():
        inner = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if inner else value
    return merged


class Cluster:
    """A folder of site configs, and the processes started from it.

    `secure`: with keys; None: as FARSTEP_TEST_SECURE says, or as the test's name was drawn.
    `port` is the coordinator's, and `address` that of the coordinator and of all sites. `hosts` are the sites of the coordinators, the first and its
    stand-bys, or their entries in the configs; "coordinator" is one in a process of its own.
    """

    drawn_secure = False  # of the test that runs

    def __init__(self, folder: Path, num_sites: int, run: dict | None = None,
                 sites: dict[int, dict] | None = None, secure: bool | None = None,
                 port: int | None = None, hosts: list[str | dict] | None = None, address: str = "127.0.0.1"):
        self.folder = folder
        if secure is None:
            secure = self.drawn_secure if FORCED_SECURE is None else FORCED_SECURE
        self.names = [f"node{i + 1}" for i in range(num_sites)]
        self.output = folder / "out"
        self.seen: dict[str, tuple[int, int, list[dict]]] = {}  # file, bytes and records by site
        self.begun = dict.fromkeys(self.names, 0)  # the number of records before the newest process
        self.run = merge({
            "name": "test", "seed": 3,
            "sites": [{"name": name} for name in self.names],
            "model": {"preset": "tiny", "vocabulary": 1024, "hidden": 32, "intermediate": 64,
                      "layers": 2, "heads": 2, "kv_heads": 1},
            "data": {"sequence_length": 32},
            "inner": {"peak_learning_rate": 0.003},
            "outer": {"rounds": 3, "momentum": 0.5},
            "plan": {"base_steps": 5, "base_batch": 4},
            "evaluate": {"every_rounds": 1, "windows": 16},
            "deadlines": {"join_seconds": 60, "heartbeat_seconds": 0.3, "lost_after_seconds": 15,
                          "pause_seconds": 0},
        }, run or {})
        (folder / "run.json").write_text(json.dumps(self.run, indent=1))
        self.endpoint = endpoint_of(address, port or free_port())
        if secure and not (folder / "keys").exists():
            made = farstep("keys", "--folder", folder / "keys", "--run", "test", "--sites",
                           *self.names, "coordinator")
            assert made.returncode == 0, made.stderr
        self.secure = secure
        configs = []
        for index, name in enumerate(self.names):
            site = {"name": name, "run": "run.json",
                    "coordinator": {"endpoint": self.endpoint, "host": index == 0},
                    "network": {"address": address},
                    "cpu": {"products": "first"},  # runs are compared bit by bit
                    "devices": [{"kind": "cpu", "threads": 1}],
                    "data": str(DATA), "output": "out"}
            if secure:
                site["network"]["keys"] = f"keys/sites/{name}"
            configs.append(merge(site, (sites or {}).get(index, {})))
        only = [site["name"] for site in configs if site["coordinator"]["host"]]
        self.endpoints = [host if isinstance(host, dict)
                          else {"endpoint": endpoint_of(address, free_port()), "site": host}
                          for host in hosts or []]
        for name, site in zip(self.names, configs):
            if hosts:
                site["coordinator"] = {"endpoints": self.endpoints}
            elif secure and not site["coordinator"]["host"]:
                site["coordinator"].setdefault("site", (only or ["coordinator"])[0])
            (folder / f"{name}.json").write_text(json.dumps(site, indent=1))

    def write_coordinator_config(self, **changes) -> Path:
        """Writes the config of `farstep coordinator`, for sites of which none hosts it."""
        config = {"run": "run.json", "endpoint": self.endpoint}
        for place, one in enumerate(self.endpoints):
            if one["site"] == "coordinator":
                config |= {"endpoint": one["endpoint"], "place": place}
        config |= changes
        if self.secure:
            config["keys"] = "keys/sites/coordinator"
        path = self.folder / "coordinator.json"
        path.write_text(json.dumps(config))
        return path

    def launch(self, *options: str, timeout: float = 2 * PATIENCE_SECONDS) -> subprocess.CompletedProcess:
        """Runs all sites to their end with `farstep launch`."""
        return farstep("launch", self.folder, *options, timeout=timeout)

    def start(self, name: str, *options: str) -> subprocess.Popen:
        """Starts one site's process; its output goes to a file beside its config."""
        self.begun[name] = len(self.events(name))
        with open(self.folder / f"{name}.txt", "w", encoding="utf-8") as log:
            return subprocess.Popen([str(FARSTEP), "train", "--config",
                                     str(self.folder / f"{name}.json"), *options],
                                    stdout=log, stderr=log)

    def log(self, name: str) -> str:
        """What the site's process printed."""
        return (self.folder / f"{name}.txt").read_text(encoding="utf-8", errors="replace")

    def events(self, name: str) -> list[dict]:
        """The site's records so far; a line that is being written is left out."""
        try:
            with open(self.output / name / "events.jsonl", "rb") as file:
                known, begin, records = self.seen.get(name, (0, 0, []))
                status = os.fstat(file.fileno())
                if status.st_ino != known or status.st_size < begin:  # another file
                    begin, records = 0, []
                file.seek(begin)
                lines = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        begin += sum(len(line) + 1 for line in lines)
        records = records + [json.loads(line) for line in lines if line]
        self.seen[name] = (status.st_ino, begin, records)
        return records

    def report(self) -> dict:
        """`farstep report --json` of the run."""
        result = farstep("report", self.output, "--json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)


def validation_losses(cluster: Cluster) -> dict[int, float]:
    """Loss of theta_global by finished rounds, over all sites' slices of the validation windows."""
    sums: dict[int, list[float]] = {}
    for name in cluster.names:
        for event in cluster.events(name):
            if event["event"] == "evaluation":
                total = sums.setdefault(event["round"], [0.0, 0.0])
                total[0] += event["loss_sum"]
                total[1] += event["tokens"]
    return {rounds: total / tokens for rounds, (total, tokens) in sums.items()}


def by_event(cluster: Cluster, name: str, kind: str) -> list[dict]:
    """One site's records of one kind."""
    return [event for event in cluster.events(name) if event["event"] == kind]


def trajectory(cluster: Cluster, name: str) -> dict:
    """Loss of every step and hash of every round; what was redone replaces what was abandoned."""
    found = {}
    for event in cluster.events(name):
        if event["event"] == "step":
            found["step", event["round"], event["step"]] = (event["loss"], event["gradient_norm"],
                                                            event["learning_rate"])
        elif event["event"] == "round":
            found["round", event["round"]] = event["theta_hash"]
    return found


def has_done(cluster: Cluster, name: str, round_number: int, step: int) -> bool:
    """Whether the site's newest process has done that step of that round, or a later one."""
    return any(event["event"] == "step" and (event["round"], event["step"]) >= (round_number, step)
               for event in reversed(cluster.events(name)[cluster.begun[name]:]))


def wait_until(condition, seconds: float, what: str):
    """Polls until `condition()` is true; fails with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)  # a pause between two looks at files of another process
    return value


def break_connections(process: subprocess.Popen, spared_port: int = 0) -> int:
    """Breaks a process's TCP connections, as a router does that forgets them; returns their number.

    Those from or to the spared port stay.
    """
    pidfd_getfd = 438  # number of the system call; os has only pidfd_open()
    call = ctypes.CDLL(None, use_errno=True).syscall
    broken = 0
    with contextlib.closing(os.fdopen(os.pidfd_open(process.pid))) as handle:
        for descriptor in os.listdir(f"/proc/{process.pid}/fd"):
            copy = call(pidfd_getfd, handle.fileno(), int(descriptor), 0)
            if copy < 0:  # it was closed meanwhile
                continue
            if not stat.S_ISSOCK(os.fstat(copy).st_mode):
                os.close(copy)
                continue
            with socket.socket(fileno=copy) as connection:
                try:
                    ends = (connection.getsockname(), connection.getpeername())
                except OSError:  # it listens
                    continue
                if (connection.family in (socket.AF_INET, socket.AF_INET6)
                        and spared_port not in (end[1] for end in ends)):
                    connection.shutdown(socket.SHUT_RDWR)
                    broken += 1
    return broken


def plain_if_ring(run: dict) -> bool | None:
    """`secure` of a run: False if it is to use Gloo's ring, which a run with keys replaces by its own."""
    steps_together = run.get("strategy", {}).get("kind") == "ring_all_reduce"
    exchange = run.get("sync", {}).get("exchange", "ring" if steps_together else "direct")
    return False if exchange == "ring" else None


def draws_keys(test: str) -> bool:
    """Whether the sites of this test, "module.method", have keys: a third of all, the same ones each time."""
    return zlib.crc32(test.encode()) % 3 == 0


@contextlib.contextmanager
def running(cluster: Cluster):
    """Starts all sites; gives their processes by name, and kills what is left of them at the end."""
    processes = {name: cluster.start(name) for name in cluster.names}
    try:
        yield processes
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


class ClusterTest(unittest.TestCase):
    """A test with a folder of its own, whose processes end with it."""

    def setUp(self):
        self.take_new_folder()
        self.processes: list[subprocess.Popen] = []
        self.addCleanup(self.end_processes)
        module = Path(sys.modules[type(self).__module__].__file__).stem
        Cluster.drawn_secure = draws_keys(f"{module}.{self._testMethodName}")
        self.addCleanup(setattr, Cluster, "drawn_secure", False)

    def take_new_folder(self):
        """Makes `folder` an empty one, which goes when the test ends."""
        temporary = tempfile.TemporaryDirectory(prefix="farstep-e2e-", ignore_cleanup_errors=True)
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def make_folder(self, name: str) -> Path:
        """A folder in `folder`, for one of several clusters."""
        folder = self.folder / name.replace(" ", "_")
        folder.mkdir()
        return folder

    def end_processes(self):
        """Kills what still runs."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(timeout=60)

    def start_site(self, cluster: Cluster, name: str, *options: str) -> subprocess.Popen:
        """Starts one site, whose process ends with the test."""
        self.processes.append(cluster.start(name, *options))
        return self.processes[-1]

    def start_all(self, cluster: Cluster, *options: str) -> dict[str, subprocess.Popen]:
        """Starts every site of the cluster."""
        return {name: self.start_site(cluster, name, *options) for name in cluster.names}

    def wait_for_records(self, cluster: Cluster, condition: Callable[[str], bool], names, what: str):
        """Waits until the condition holds for these sites, or for all; else shows what they printed."""
        try:
            for name in names or cluster.names:
                wait_until(lambda name=name: condition(name), PATIENCE_SECONDS, f"{what} of {name}")
        except AssertionError as failure:
            logs = (f"== {path.stem}\n{path.read_text(errors='replace')[-2000:]}"
                    for path in sorted(cluster.folder.glob("*.txt")))
            raise AssertionError("\n".join((str(failure), *logs))) from None

    def wait_for_step(self, cluster: Cluster, round_number: int, step: int, *names: str):
        """Waits until the newest processes of these sites, or of all, have come to a step."""
        self.wait_for_records(cluster, lambda name: has_done(cluster, name, round_number, step), names,
                              f"step {step} of round {round_number}")

    def wait_for_rounds(self, cluster: Cluster, rounds: int, *names: str):
        """Waits until these sites, or all, have recorded so many rounds."""
        self.wait_for_records(cluster, lambda name: len(by_event(cluster, name, "round")) >= rounds, names,
                              f"{rounds} rounds")

    def assert_end(self, cluster: Cluster, started: dict[str, subprocess.Popen], code: int = 0):
        """Waits for these sites, which end with that code; a code of None is of one that has not ended."""
        for name, process in started.items():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=PATIENCE_SECONDS)
            self.assertEqual(process.returncode, code, f"{name}\n{cluster.log(name)}")

    def interrupt_after(self, cluster: Cluster, round_number: int, step: int, *options: str):
        """Starts all sites; when each has done that step, sends SIGINT to all and waits for them."""
        started = self.start_all(cluster, *options)
        self.wait_for_step(cluster, round_number, step)
        for process in started.values():
            process.send_signal(signal.SIGINT)
        self.assert_end(cluster, started, 130)

    def assert_success(self, result: subprocess.CompletedProcess):
        """The command ended well; else its output is shown."""
        self.assertEqual(result.returncode, 0, result.stdout[-4000:] + result.stderr[-4000:])

    def assert_one_theta(self, cluster: Cluster, *names: str, absent: tuple[str, ...] = ()):
        """One theta_global after each round at all who were there, and another after each round.

        These sites, or all, did every round. `absent` ones were away in between, but not in the last.
        """
        wanted = set(range(1, cluster.run["outer"]["rounds"] + 1))
        hashes: dict[int, str] = {}
        for name in names or cluster.names:
            rounds = by_event(cluster, name, "round")
            for event in rounds:
                first = hashes.setdefault(event["round"], event["theta_hash"])
                self.assertEqual(event["theta_hash"], first, (name, event["round"]))
            found = {event["round"] for event in rounds}
            if name in absent:
                self.assertIn(max(wanted), found, name)
            else:
                self.assertEqual(found, wanted, name)
        self.assertEqual(len(set(hashes.values())), len(wanted))

    def assert_no_step_twice(self, cluster: Cluster, *names: str):
        """These sites, or all, did each step once."""
        for name in names or cluster.names:
            steps = [(event["round"], event["step"]) for event in by_event(cluster, name, "step")]
            self.assertEqual(len(steps), len(set(steps)), f"{name} did a step twice")

    def assert_same_trajectory(self, cluster: Cluster, whole: Cluster):
        """Every step's loss and every round's hash are those of the undisturbed run, bit by bit."""
        total = 0
        for name in whole.names:
            wanted = trajectory(whole, name)
            steps = len(by_event(whole, name, "step"))
            total += steps
            self.assertEqual(len(wanted), whole.run["outer"]["rounds"] + steps)
            self.assertEqual(trajectory(cluster, name), wanted)
        self.assertGreater(total, 0)
