#!/usr/bin/env python3
"""How soon a killed site works again after its restart, and how long the state takes.

Three sites train the 14m preset on this machine. One gets SIGKILL, and is started again when the
others go on. Each site's uplink is set to 200 Mbit/s, so a donor sends with half of that: theta_global
and momentum, 8 bytes a parameter. Printed: seconds from the start of the new process to the state's
first byte (at the end of a round), the transfer against bytes / rate, and to its first inner step that
counts; and how many rounds the others did meanwhile.

Usage: tests/bench/rejoin.py [--kills N]
The binary is build/release/farstep, the data are build/release/end_to_end_data.
"""

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))

RATE = 200e6  # bits a second, of each uplink; a state gets half
RUN = {"min_sites": 1, "outer": {"rounds": 1000}, "model": {"preset": "14m"},
       "plan": {"base_steps": 60, "base_batch": 1}, "evaluate": {"every_rounds": 0},
       "checkpoint": {"every_rounds": 10},
       "deadlines": {"heartbeat_seconds": 1, "lost_after_seconds": 5}}
SHAPE = ("vocabulary", "hidden", "intermediate", "layers", "heads", "kv_heads")


def one_return() -> str:
    """Kills a site, starts it again, and says what came when."""
    from cluster import Cluster, by_event, running, wait_until
    with tempfile.TemporaryDirectory(prefix="farstep-rejoin-") as folder:
        uplink = {"network": {"uplink_bits_per_second": RATE}}
        run = RUN | {"model": RUN["model"] | dict.fromkeys(SHAPE)}  # as the preset has them
        cluster = Cluster(Path(folder), 3, run, {site: uplink for site in range(3)})
        with running(cluster) as processes:
            wait_until(lambda: len(by_event(cluster, "node3", "round")) >= 1, 300, "a round")
            parameters = by_event(cluster, "node3", "run")[0]["parameters"]
            processes["node3"].send_signal(signal.SIGKILL)
            processes["node3"].wait()
            wait_until(lambda: "generation 2" in cluster.log("node1"), 60, "the loss")
            rounds = len(by_event(cluster, "node1", "round"))
            began = time.monotonic()
            processes["node3"] = cluster.start("node3", "--resume=auto")
            wait_until(lambda: any("goes to site node3" in cluster.log(donor)
                                   for donor in ("node1", "node2")), 300, "a handover")
            sent = time.monotonic()
            wait_until(lambda: "has come from site" in cluster.log("node3"), 300, "the state")
            came = time.monotonic()
            steps = len(by_event(cluster, "node3", "step"))
            wait_until(lambda: len(by_event(cluster, "node3", "step")) > steps, 300, "a step")
            works = time.monotonic()
            missed = len(by_event(cluster, "node1", "round")) - rounds
            least = 8 * 8 * parameters / (RATE / 2)
            return (f"the round ended after {sent - began:.1f} s; the state of "
                    f"{8 * parameters / 1e6:.0f} MB took {came - sent:.2f} s, "
                    f"{(came - sent) / least:.2f} times bytes / rate; first step after "
                    f"{works - began:.1f} s, in which the others did {missed} rounds")


def main():
    """Prints a line a kill."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=3)
    for _ in range(parser.parse_args().kills):
        print(one_return(), flush=True)


if __name__ == "__main__":
    main()
