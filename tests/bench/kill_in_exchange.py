#!/usr/bin/env python3
"""Kills a site in the middle of an exchange, again and again, and measures what it costs the others.

Sites of a tiny model train in a lab (root) on slow lines; a step takes an emulated time. Rounds without a fault
come first: their exchange is the unit. Then one site after the other is killed when a part of the exchange is
over, drawn by --seed, and started again; the next kill waits until all take part. `after` is the time from when
the coordinator leaves the killed site out until the others have committed the round.

Usage: FARSTEP_BINARY=... FARSTEP_TEST_DATA=... WAN_LAB_BINARY=... tests/bench/kill_in_exchange.py
       [--sites N] [--rate R] [--rtt T] [--kills N] [--seed N] [--keys]
"""

import argparse
import random
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from storm_figures import commits
from storm_sites import Party, obstacle

MODEL = {"hidden": 160, "intermediate": 448, "layers": 4}
STEPS = 10
STEP_SECONDS = 0.3
QUIET_ROUNDS = 5
ROUND_SECONDS = 120.0  # within which any round is over
LOOK_SECONDS = 0.01


def wait(run: Party, condition, what: str):
    """Looks after the processes until the condition holds."""
    deadline = time.monotonic() + ROUND_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} has not come within {ROUND_SECONDS:.0f} s")
        run.look()
        time.sleep(LOOK_SECONDS)  # a pause between two looks at other processes


def rounds(run: Party) -> list:
    """The committed rounds so far."""
    return commits(run.records(), 0, time.time())


def exchange_seconds(run: Party, number: int) -> float:
    """Of a round that all its sites have recorded: the longest of their times from arrival to commit."""
    return max(record["wan_seconds"] for written in run.records().values() for record in written
               if record["event"] == "sync" and record["round"] == number)


def last_round(run: Party) -> int:
    """The newest committed one."""
    return max((record["round"] for written in run.records().values() for record in written
                if record["event"] == "round"), default=0)


def wait_for_all(run: Party):
    """Waits for the commit of a round with steps of all sites."""
    wait(run, lambda: len(rounds(run)[-1].steps) == len(run.sites), "a round of all sites")


def left_out(run: Party) -> int:
    """How often the coordinator has left a site out."""
    return run.coordinator.log.read_text(encoding="utf-8").count("generation")


def kill(run: Party, victim: str, share: float, unit: float) -> tuple[float, float]:
    """Returns when the site was left out after its kill, and how long the others then took."""
    wait_for_all(run)
    before = last_round(run)
    wait(run, lambda: last_round(run) > before, "the next round")
    time.sleep(STEPS * STEP_SECONDS + share * unit)  # until the exchange is over by this part
    known = left_out(run)
    killed = time.monotonic()
    run.site(victim).kill(restart_seconds=15)
    wait(run, lambda: left_out(run) > known, "the loss")
    lost = time.monotonic()
    wait(run, lambda: last_round(run) > before + 1, "the round without the site")
    return lost - killed, time.monotonic() - lost


def main() -> int:
    """Prints a line a kill, and the row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=4)
    parser.add_argument("--rate", default="16M")
    parser.add_argument("--rtt", default="40ms")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keys", action="store_true", help="links are encrypted")
    options = parser.parse_args()
    if lacks := obstacle():
        parser.error(lacks)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # everything ends with this program
    drawn = random.Random(options.seed)
    run_file = {"name": "kills", "min_sites": 1, "outer": {"rounds": 100_000}, "model": MODEL,
                "plan": {"base_steps": STEPS, "base_batch": 1}, "evaluate": {"every_rounds": 0},
                "checkpoint": {"every_rounds": 5}}
    with tempfile.TemporaryDirectory(prefix="farstep-kills-", ignore_cleanup_errors=True) as folder:
        run = Party(Path(folder), options.sites, run_file, STEP_SECONDS, secure=options.keys, hosts=False,
                    has_lab=True, lab_options=("--rate", options.rate, "--rtt", options.rtt))
        try:
            run.start()
            first = last_round(run)
            wait(run, lambda: last_round(run) > first + QUIET_ROUNDS, "rounds without faults")
            unit = statistics.median(exchange_seconds(run, number)
                                     for number in range(first + 1, first + QUIET_ROUNDS + 1))
            print(f"an exchange without faults takes {unit:.2f} s", flush=True)
            shares, after = [], []
            for number in range(options.kills):
                share = drawn.uniform(0.05, 0.95)
                victim = run.cluster.names[number % options.sites]
                found, seconds = kill(run, victim, share, unit)
                print(f"{victim} killed at {share:.2f} of it: left out after {found:.2f} s, "
                      f"and the round was over {seconds:.2f} s later", flush=True)
                shares.append(share)
                after.append(seconds)
        finally:
            run.close()
    print(f"\n| sites | keys | exchange without faults (s) | kills | at, mean | after: mean, median, most (s) | "
          f"of an exchange |\n| --- | --- | --- | --- | --- | --- | --- |\n"
          f"| {options.sites} | {'yes' if options.keys else 'no'} | {unit:.2f} | {len(after)} | "
          f"{statistics.mean(shares):.2f} | {statistics.mean(after):.2f}, {statistics.median(after):.2f}, "
          f"{max(after):.2f} | {statistics.mean(after) / unit:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
