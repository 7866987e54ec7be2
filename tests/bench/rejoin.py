#!/usr/bin/env python3
"""How soon a killed site works again after its restart, and how long the state takes.

Three sites train the 14m preset on this machine. One gets SIGKILL in round 2, each time at another
part of it, and is started again when the others go on. Each site's uplink is set to 200 Mbit/s, so a donor sends with half of that:
theta_global and momentum, 8 bytes a parameter. A line a kill: seconds from the start of the new
process until it asks for the state, until the first byte comes, and until its first inner step, the
last one in rounds too; and the transfer against bytes / rate. --steps sets how long a round is.

Usage: tests/bench/rejoin.py [--kills N] [--steps N]
The binary is build/release/farstep, the data are build/release/end_to_end_data.
"""

import argparse
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))

RATE = 200e6  # bits a second, of each uplink; a state gets half
RUN = {"min_sites": 1, "outer": {"rounds": 1000}, "model": {"preset": "14m"},
       "plan": {"base_batch": 1}, "evaluate": {"every_rounds": 0},
       "checkpoint": {"every_rounds": 10},
       "deadlines": {"heartbeat_seconds": 1, "lost_after_seconds": 5}}
SHAPE = ("vocabulary", "hidden", "intermediate", "layers", "heads", "kv_heads")
PATIENCE = 900  # seconds for anything


def round_seconds(cluster, name: str) -> float:
    """The median time between the ends of a site's rounds."""
    from cluster import by_event
    ends = [event["time"] for event in by_event(cluster, name, "round")]
    return statistics.median(end - begin for begin, end in zip(ends, ends[1:]))


def one_return(steps: int, part: float) -> str:
    """Kills a site after this part of a round, starts it again, and says what came when."""
    from cluster import Cluster, by_event, running, wait_until
    with tempfile.TemporaryDirectory(prefix="farstep-rejoin-") as folder:
        uplink = {"network": {"uplink_bits_per_second": RATE}}
        run = RUN | {"model": RUN["model"] | dict.fromkeys(SHAPE),  # as the preset has them
                     "plan": RUN["plan"] | {"base_steps": steps}}
        cluster = Cluster(Path(folder), 3, run, {site: uplink for site in range(3)})

        def wait(condition, what):
            wait_until(condition, PATIENCE, what)
            return time.monotonic()

        with running(cluster) as processes:
            wait(lambda: len(by_event(cluster, "node3", "step")) >= steps * (1 + part), "steps")
            parameters = by_event(cluster, "node3", "run")[0]["parameters"]
            processes["node3"].send_signal(signal.SIGKILL)
            processes["node3"].wait()
            wait(lambda: "generation 2" in cluster.log("node1"), "the loss")
            done = len(by_event(cluster, "node3", "step"))
            began = time.monotonic()
            processes["node3"] = cluster.start("node3", "--resume=auto")
            asked = wait(lambda: "asks for its state" in cluster.log("node3"), "the request")
            sent = wait(lambda: any("goes to site node3" in cluster.log(donor)
                                    for donor in ("node1", "node2")), "a handover")
            came = wait(lambda: "has come from site" in cluster.log("node3"), "the state")
            works = wait(lambda: len(by_event(cluster, "node3", "step")) > done, "a step")
            wait(lambda: len(by_event(cluster, "node1", "round")) >= 4, "rounds")
            rounds = (works - began) / round_seconds(cluster, "node1")
            least = 8 * 8 * parameters / (RATE / 2)
            return (f"killed after {part:.2f} of a round of {steps} steps; asked after {asked - began:.1f} s, first byte after "
                    f"{sent - began:.1f} s; the state of {8 * parameters / 1e6:.0f} MB took "
                    f"{came - sent:.2f} s, {(came - sent) / least:.2f} times bytes / rate; first "
                    f"step after {works - began:.1f} s, {rounds:.2f} rounds")


def main():
    """Prints a line a kill."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60, help="inner steps of a round")
    options = parser.parse_args()
    for kill in range(options.kills):
        print(one_return(options.steps, kill / options.kills), flush=True)


if __name__ == "__main__":
    main()
