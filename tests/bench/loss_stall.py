#!/usr/bin/env python3
"""How long the others wait when one of four sites is killed, or loses its connections.

Four sites train a small model over emulated links (40 ms, 2 Mbit/s). One gets SIGKILL in the
middle of its steps or in the exchange, or its connections to the others break in the exchange. The
time runs from then to the next commit of the others. It has three parts: until the cause is known
(deadlines 1 s and 45 s, the defaults), what is left of the round, and the exchange of about 0.8 s
itself.

Usage: tests/bench/loss_stall.py [--cases N]
The binary is build/release/farstep, the data are build/release/end_to_end_data.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))

STEPS = 300  # of a round
RUN = {"min_sites": 1, "outer": {"rounds": 1000}, "plan": {"base_steps": STEPS, "base_batch": 1},
       "deadlines": {"heartbeat_seconds": 1, "lost_after_seconds": 45},
       "evaluate": {"every_rounds": 0}}
LINKS = {"network": {"emulate": {"delay_seconds": 0.04, "rate_bits_per_second": 2e6}}}
IN_THE_EXCHANGE_SECONDS = 0.4  # after the last step: about half of the exchange


def stall_seconds(harm: str, step: int, pause_seconds: float) -> float:
    """Seconds from the harm, `pause_seconds` after this step of round 4, to the others' commit."""
    from cluster import Cluster, break_connections, by_event, running, wait_until
    from ports import port_of
    with tempfile.TemporaryDirectory(prefix="farstep-stall-") as folder:
        cluster = Cluster(Path(folder), 4, RUN, {site: LINKS for site in range(4)})
        with running(cluster) as processes:
            wait_until(lambda: any(event["round"] == 4 and event["step"] >= step
                                   for event in by_event(cluster, "node4", "step")), 120, "a step")
            time.sleep(pause_seconds)
            began_seconds = time.time()
            if harm == "killed":
                processes["node4"].kill()
            else:
                break_connections(processes["node4"], port_of(cluster.endpoint))
            wait_until(lambda: any(event["round"] == 4
                                   for event in by_event(cluster, "node1", "sync")), 60, "a commit")
            return time.time() - began_seconds


def main():
    """Prints the times of each kind of harm, and their medians."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5, help="of each kind")
    cases = parser.parse_args().cases
    for harm, place, step, pause_seconds in (
            ("killed", "its steps", STEPS // 3, 0),
            ("killed", "the exchange", STEPS, IN_THE_EXCHANGE_SECONDS),
            ("cut off", "the exchange", STEPS, IN_THE_EXCHANGE_SECONDS)):
        seconds = sorted(stall_seconds(harm, step, pause_seconds) for _ in range(cases))
        print(f"{harm} in {place}: {', '.join(f'{each:.2f}' for each in seconds)} s; "
              f"median {statistics.median(seconds):.2f} s", flush=True)


if __name__ == "__main__":
    main()
