#!/usr/bin/env python3
"""What secure links cost and bear: runs without and with something, in turn.

Plain and secure runs with the same deltas, but for the last two parts, whose runs are all secure.

  lab       four sites on the WAN lab, 200 Mbit/s and 80 ms: seconds of an exchange (needs root)
  cpu       two sites on the loopback: processor seconds of both per gigabyte that a site sends
  cut       two sites whose line, 20 MB/s, is dead for 30 s in the middle of an exchange: seconds of
            that exchange without the 30 s, against those of an exchange without a cut
  strangers two sites with 500 connections held open and five new ones a second: seconds of a step

Usage: tests/bench/secure_links.py PART [--pairs N]
"""

import argparse
import contextlib
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))

WAN_LAB = Path(__file__).resolve().parents[2] / "scripts" / "wan_lab"
SHAPE = ("vocabulary", "hidden", "intermediate", "layers", "heads", "kv_heads")
LINE_BYTES_PER_SECOND = 20e6  # of each connection
IN_THE_EXCHANGE_SECONDS = 1   # after the last step
CUT_SECONDS = 30
# A step of one short window: nearly all of a round is its exchange.
RUN = {"outer": {"rounds": 6}, "model": {"preset": "14m"} | dict.fromkeys(SHAPE),
       "plan": {"base_steps": 1, "base_batch": 1}, "evaluate": {"every_rounds": 0},
       "checkpoint": {"every_rounds": 1000}}


@contextlib.contextmanager
def lab(folder: Path):
    """The file of a lab of four sites."""
    from cluster import wait_until
    process = subprocess.Popen([WAN_LAB, "up", "--folder", folder, "--sites",
                                "4", "--rate", "200M", "--rtt", "80ms"])
    try:
        wait_until((folder / "lab.json").exists, 60, "a lab")
        yield folder / "lab.json"
    finally:
        process.terminate()
        process.wait()


def lab_seconds(secure: bool) -> float:
    """The median exchange of a run on the lab."""
    from cluster import Cluster, by_event
    with tempfile.TemporaryDirectory(prefix="farstep-secure-") as name:
        folder = Path(name)
        with lab(folder / "lab") as file:
            (folder / "run").mkdir()
            cluster = Cluster(folder / "run", 4, RUN, secure=secure)
            result = cluster.launch("--lab", file, timeout=600)
            assert result.returncode == 0, result.stderr
            return statistics.median(sync["wan_seconds"] for site in cluster.names
                                     for sync in by_event(cluster, site, "sync")
                                     if sync["round"] > 2)


def cpu_seconds(secure: bool) -> float:
    """Processor seconds of a run of two sites per gigabyte that a site sends."""
    from cluster import Cluster, by_event
    with tempfile.TemporaryDirectory(prefix="farstep-secure-") as name:
        cluster = Cluster(Path(name), 2, RUN | {"outer": {"rounds": 20}}, secure=secure)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = cluster.launch(timeout=600)
        assert result.returncode == 0, result.stderr
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        sent = sum(event["socket_bytes_sent"] for event in by_event(cluster, "node1", "round"))
        return used / (sent / 1e9)


def cut_seconds(is_cut: bool) -> float:
    """An exchange over a slow line, without the time for which the line was dead."""
    from cluster import Cluster, by_event, free_port, running, wait_until
    from ports import endpoint_of
    from slow_line import Line
    port = free_port()
    near, far = "127.0.0.3", "127.0.0.2"
    sites = {0: {"coordinator": {"endpoint": endpoint_of(far, port)},
                 "network": {"address": near, "listen": far}},
             1: {"coordinator": {"endpoint": endpoint_of(near, port)}, "network": {"address": ""}}}
    # The default deadlines, which the tests' are not.
    run = RUN | {"outer": {"rounds": 4},
                 "deadlines": {"heartbeat_seconds": 1, "lost_after_seconds": 45}}
    line = Line(near, far, port)
    with tempfile.TemporaryDirectory(prefix="farstep-secure-") as name:
        cluster = Cluster(Path(name), 2, run, sites, secure=True)
        with running(cluster) as processes:
            wait_until(lambda: len(by_event(cluster, "node1", "round")) >= 1, 120, "a round")
            line.bytes_per_second = LINE_BYTES_PER_SECOND
            wait_until(lambda: len(by_event(cluster, "node1", "round")) >= 2, 120, "a round")
            wait_until(lambda: len(by_event(cluster, "node1", "step")) >= 3, 60, "a step")
            time.sleep(IN_THE_EXCHANGE_SECONDS)
            if is_cut:
                line.may_pass.clear()
                time.sleep(CUT_SECONDS)
                line.may_pass.set()
            for process in processes.values():
                assert process.wait(timeout=300) == 0
        line.close()
        assert not by_event(cluster, "node1", "view"), "the membership changed"
        third = by_event(cluster, "node1", "sync")[2]
        return third["wan_seconds"] - (CUT_SECONDS if is_cut else 0)


def step_seconds(has_strangers: bool) -> float:
    """The median step of a secure run, alone or among strangers."""
    from cluster import Cluster, by_event, running, wait_until
    from ports import port_of
    # Steps long enough to be told from the noise of a machine.
    run = {"outer": {"rounds": 40}, "plan": {"base_steps": 40, "base_batch": 32, "micro_batch": 8},
           "evaluate": {"every_rounds": 0}, "checkpoint": {"every_rounds": 1000}}
    with tempfile.TemporaryDirectory(prefix="farstep-secure-") as name:
        cluster = Cluster(Path(name), 2, run, secure=True)
        port = port_of(cluster.endpoint)
        is_over = threading.Event()

        def come():
            with contextlib.ExitStack() as held:
                for _ in range(500 if has_strangers else 0):
                    held.enter_context(socket.create_connection(("127.0.0.1", port)))
                while has_strangers and not is_over.wait(0.2):
                    with contextlib.suppress(OSError):
                        with socket.create_connection(("127.0.0.1", port)) as stranger:
                            stranger.sendall(b"x" * 10000)
                is_over.wait()

        with running(cluster) as processes:
            wait_until(lambda: by_event(cluster, "node1", "round"), 60, "a round")
            strangers = threading.Thread(target=come)
            strangers.start()
            for process in processes.values():
                assert process.wait(timeout=300) == 0
            is_over.set()
            strangers.join()
        return statistics.median(step["seconds"] for step in by_event(cluster, "node2", "step")
                                 if step["round"] > 10)


PARTS = {"lab": (lab_seconds, "s an exchange"), "cpu": (cpu_seconds, "processor s a GB"),
         "cut": (cut_seconds, "s an exchange, but for the cut"), "strangers": (step_seconds, "s a step")}


def main():
    """Prints each pair, then the medians."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    measure, unit = PARTS[options.part]
    pairs = []
    for _ in range(options.pairs):
        pairs.append((measure(False), measure(True)))
        print(f"without {pairs[-1][0]:.4g}, with {pairs[-1][1]:.4g} {unit}", flush=True)
    without, with_it = (statistics.median(side) for side in zip(*pairs))
    ratio = statistics.median(second / first for first, second in pairs)
    print(f"medians: {without:.4g} and {with_it:.4g} {unit}, ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
