"""Sets up runs of real `farstep` processes for the end-to-end tests. Standard library only."""

import contextlib
import ctypes
import functools
import json
import os
import signal
import socket
import stat
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RELEASE = REPOSITORY / "build" / "release"
FARSTEP = Path(os.environ.get("FARSTEP_BINARY", RELEASE / "farstep")).resolve()
DATA = Path(os.environ.get("FARSTEP_TEST_DATA", RELEASE / "end_to_end_data")).resolve()
# Whether the sites of all tests have keys, and so secure links: any test can be run both ways.
SECURE = os.environ.get("FARSTEP_TEST_SECURE") == "1"


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def farstep(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess:
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
    """A folder of site configs, and the processes started from it; `secure`: with keys.

    `port` is the coordinator's. `hosts` are the sites of the coordinators, the first and its
    stand-bys, or their entries in the configs; "coordinator" is one in a process of its own.
    """

    def __init__(self, folder: Path, num_sites: int, run: dict | None = None,
                 sites: dict[int, dict] | None = None, secure: bool | None = None,
                 port: int | None = None, hosts: list[str | dict] | None = None):
        self.folder = folder
        secure = SECURE if secure is None else secure
        self.names = [f"node{i + 1}" for i in range(num_sites)]
        self.output = folder / "out"
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
            "deadlines": {"join_seconds": 30, "heartbeat_seconds": 0.3, "lost_after_seconds": 2,
                          "pause_seconds": 0},
        }, run or {})
        (folder / "run.json").write_text(json.dumps(self.run, indent=1))
        self.endpoint = f"tcp://127.0.0.1:{port or free_port()}"
        if secure and not (folder / "keys").exists():
            made = farstep("keys", "--folder", folder / "keys", "--run", "test", "--sites",
                           *self.names, "coordinator")
            assert made.returncode == 0, made.stderr
        self.secure = secure
        configs = []
        for index, name in enumerate(self.names):
            site = {"name": name, "run": "run.json",
                    "coordinator": {"endpoint": self.endpoint, "host": index == 0},
                    "network": {"address": "127.0.0.1"},
                    "cpu": {"products": "first"},  # runs are compared bit by bit
                    "devices": [{"kind": "cpu", "threads": 1}],
                    "data": str(DATA), "output": "out"}
            if secure:
                site["network"]["keys"] = f"keys/sites/{name}"
            configs.append(merge(site, (sites or {}).get(index, {})))
        only = [site["name"] for site in configs if site["coordinator"]["host"]]
        self.endpoints = [host if isinstance(host, dict)
                          else {"endpoint": f"tcp://127.0.0.1:{free_port()}", "site": host}
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

    def launch(self, *options: str, timeout: float = 120) -> subprocess.CompletedProcess:
        """Runs all sites to their end with `farstep launch`."""
        return farstep("launch", self.folder, *options, timeout=timeout)

    def start(self, name: str, *options: str) -> subprocess.Popen:
        """Starts one site's process; its output goes to a file beside its config."""
        with open(self.folder / f"{name}.txt", "w", encoding="utf-8") as log:
            return subprocess.Popen([str(FARSTEP), "train", "--config",
                                     str(self.folder / f"{name}.json"), *options],
                                    stdout=log, stderr=log)

    def log(self, name: str) -> str:
        """What the site's process printed."""
        return (self.folder / f"{name}.txt").read_text(encoding="utf-8", errors="replace")

    def events(self, name: str) -> list[dict]:
        """The site's records so far; a line that is being written is left out."""
        path = self.output / name / "events.jsonl"
        if not path.exists():
            return []
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines if line]

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


def measures_time(test):
    """Tries a test of times up to three times.

    Other users of the machine make such a test fail now and then, a defect makes it fail each time.
    """
    @functools.wraps(test)
    def tried(self):
        for trial in (1, 2, 3):
            try:
                return test(self)
            except AssertionError as failure:
                if trial == 3:
                    raise
                print(f"{test.__name__}: trial {trial} of 3 failed: {failure}", flush=True)
                self.take_new_folder()
    return tried


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

    def take_new_folder(self):
        """Makes `folder` an empty one, which goes when the test ends."""
        temporary = tempfile.TemporaryDirectory(prefix="farstep-e2e-")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def end_processes(self):
        """Kills what still runs."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(timeout=10)

    def start_all(self, cluster: Cluster, *options: str) -> dict[str, subprocess.Popen]:
        """Starts every site of the cluster."""
        started = {name: cluster.start(name, *options) for name in cluster.names}
        self.processes += started.values()
        return started

    def interrupt_after(self, cluster: Cluster, round_number: int, step: int):
        """Starts all sites; when each has done that step, sends SIGINT to all and waits for them."""
        started = self.start_all(cluster)
        wait_until(lambda: all(any((event["round"], event["step"]) >= (round_number, step)
                                   for event in by_event(cluster, name, "step"))
                               for name in cluster.names), 60, f"step {step} of round {round_number}")
        for process in started.values():
            process.send_signal(signal.SIGINT)
        for name, process in started.items():
            self.assertEqual(process.wait(timeout=30), 130, cluster.log(name))

    def assert_success(self, result: subprocess.CompletedProcess):
        """The command ended well; else its output is shown."""
        self.assertEqual(result.returncode, 0, result.stdout[-4000:] + result.stderr[-4000:])
