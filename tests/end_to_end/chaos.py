#!/usr/bin/env python3
"""Trains while sites are killed, frozen, stopped and cut off, and checks the run all the time.

A supervisor starts each site again when it ends, as a user's would. A site that wakes joins again by
itself. The faults come at random times, from a seed: two runs with one seed have the same faults, up to
the machine's own timing. At least one healthy site is left alone. When the faults cease, all sites must
train together again.

Checked all the time: all sites have one theta_global after each round; no site does a round or a step
twice; each process that ends has a code that a restart mends; memory and file descriptors stay flat.
At the end: the loss has fallen, and at least 90 % of all inner steps count. A run may be too short for
that: each interruption of a site may then cost what it costs at most, one round's steps of that site.

A site's clock jumps, by libfaketime where that is installed. A site's disk is full for a while, where
this program may mount one (as root).

With --secure the sites have keys. What they send to each other crosses lines, which fail too: a line is
dead for a while, very slow, or changes bytes on their way; and a site joins over a slow line.

With --stand-bys the coordinator may stay away, and two sites host stand-bys. More than half of the sites
must be there, so the run also pauses.

Usage: FARSTEP_BINARY=... FARSTEP_TEST_DATA=... chaos.py [--seconds S] [--seed N] [--sites N] [--secure]
       [--stand-bys]
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chaos_site import CLOCK_LIBRARY, Site, Violation, can_mount, take_mount_namespace
from cluster import (DATA, FARSTEP, Cluster, break_connections, free_port, merge,
                     validation_losses)
from ports import endpoint_of
from slow_line import Line

RUN = {"min_sites": 1, "outer": {"rounds": 1_000_000},
       "plan": {"base_steps": 150, "base_batch": 1},
       "checkpoint": {"every_rounds": 5}, "evaluate": {"every_rounds": 20},
       "deadlines": {"heartbeat_seconds": 0.3, "lost_after_seconds": 2, "join_seconds": 60}}
VARIANTS = ({},  # the seed chooses one
            {"sync": {"fragments": 3, "delay_steps": 10, "codec": {"kind": "int8"}}},
            {"plan": RUN["plan"] | {"policy": "hybrid"}, "sync": {"fragments": 2, "alpha": 0.5}},
            {"sync": {"exchange": "parameter_server", "servers": ["node2"]}},
            {"strategy": {"kind": "eager_updates"}},
            {"sync": {"exchange": "ring"}})
MEAN_PAUSE_SECONDS = 2  # between two faults
FREEZE_SECONDS = {"freezes for a moment": (0.2, 1.0), "freezes for long": (3.0, 5.0)}
COORDINATOR_FAULT = "kills of the coordinator"
AWAY_SECONDS = (0.0, 3.0)  # of the coordinator
LONG_AWAY_SECONDS = (0.0, 20.0)  # if it has stand-bys
LOST_JOURNALS = 0.3  # of the coordinator's restarts
CONNECTIONS_FAULT = "breaks of all connections of a site"
CLOCK_FAULT = "has a clock that jumps"
MOST_JUMP_SECONDS = 7200
DISK_FAULT = "has a full disk"
FULL_SECONDS = (0.5, 5.0)
FAULTS = ("is killed", "is stopped", *FREEZE_SECONDS, CONNECTIONS_FAULT, COORDINATOR_FAULT)
# Of the line to a site, in runs with lines, and for how long. A dead line is noticed after 5 s.
JOIN_FAULT = "is slow while its site joins"
LINE_FAULTS = {"is dead": (0.5, 8.0), "is slow": (1.0, 5.0), "damages bytes": (0.0, 0.1),
               JOIN_FAULT: (8.0, 12.0)}
SLOW_BYTES_PER_SECOND = 20_000
DAMAGES = 3
# A restart with --resume=auto is the remedy. A process that has just begun ends by SIGTERM itself.
RESTARTS = (4, 130, -signal.SIGKILL, -signal.SIGTERM)
UNSAVED = 3  # of a site that cannot save at its end, as its disk is full
CALM_SECONDS = 90  # within which all must train together once the faults have ceased
COMMON_ROUNDS = 3
VALIDATIONS_THAT_TEACH = 5  # with fewer, on a busy machine, the loss has hardly begun to fall
LEAST_GOODPUT = 0.9
# By which a site may lose the steps of a round. With eager updates the round before is under way too.
INTERRUPTIONS = ("is killed", "is stopped", "freezes for long", DISK_FAULT, "a line is dead",
                 f"a line {JOIN_FAULT}")


def with_lines(num_sites: int, port: int,
               ports: list[int]) -> tuple[dict[int, dict], list[Line]]:
    """Configs of sites that are reached over lines, as is the coordinator, and these lines."""
    configs = {site: {"coordinator": {"host": False, "endpoint": endpoint_of("127.0.1.100", port)},
                      "network": {"address": f"127.0.1.{site + 1}",
                                  "listen": f"127.0.2.{site + 1}", "port": ports[site]}}
               for site in range(num_sites)}
    lines = [Line(f"127.0.1.{site + 1}", f"127.0.2.{site + 1}", ports[site])
             for site in range(num_sites)]
    return configs, [*lines, Line("127.0.1.100", "127.0.0.1", port)]


class Chaos:
    """A run with faults."""

    def __init__(self, folder: Path, num_sites: int, variant: dict, seed: int, secure: bool,
                 stand_bys: bool):
        sites, self.lines = {0: {"coordinator": {"host": False}}}, []
        port = free_port()
        ports = [free_port() for _ in range(num_sites)]
        if secure:
            sites, self.lines = with_lines(num_sites, port, ports)
        addresses = ("127.0.1.100", "127.0.1.1", "127.0.1.2") if secure else 3 * ("127.0.0.1",)
        hosts = [{"endpoint": endpoint_of(address, port), "site": host}
                 for address, port, host in zip(addresses, (port, *ports), ("coordinator", "node1", "node2"))]
        run = RUN | variant
        if stand_bys:
            run = merge(run, {"min_sites": num_sites // 2 + 1, "deadlines": {"pause_seconds": 90}})
        self.cluster = Cluster(folder, num_sites, run, sites, secure, port,
                               hosts if stand_bys else None)
        self.away_seconds = LONG_AWAY_SECONDS if stand_bys else AWAY_SECONDS
        self.line_faults: dict[int, float] = {}  # when the fault of a line ends, by its place
        self.random = random.Random(seed)
        self.hashes: dict[int, str] = {}
        self.coordinator_config = self.cluster.write_coordinator_config(
            output="coordinator", endpoint=self.cluster.endpoint)
        self.start_coordinator()
        self.sites = [Site(self.cluster, name) for name in self.cluster.names]
        self.kinds = (*FAULTS, *([CLOCK_FAULT] if CLOCK_LIBRARY else []),
                      *([DISK_FAULT] if can_mount() else []))
        self.faults = dict.fromkeys(self.kinds, 0)
        if self.lines:
            self.faults |= {f"a line {fault}": 0 for fault in LINE_FAULTS}

    def start_coordinator(self):
        """Starts it, or starts it again with its journal, if that is not lost."""
        self.coordinator_returns_at: float | None = None
        with open(self.cluster.folder / "coordinator.txt", "a", encoding="utf-8") as log:
            self.coordinator = subprocess.Popen(
                [str(FARSTEP), "coordinator", "--config", str(self.coordinator_config)],
                stdout=log, stderr=log)

    def watch(self):
        """Checks everything once, wakes who has slept enough, and restarts who has ended."""
        for site in self.sites:
            if site.wakes_at is not None and time.monotonic() >= site.wakes_at:
                site.process.send_signal(signal.SIGCONT)
                site.wakes_at = None
                site.rounds_at_start = len(site.rounds)  # it may have to join again
            if site.disk and site.disk.full_until and time.monotonic() >= site.disk.full_until:
                site.disk.clear()
            site.read_events()
            for number, event in site.rounds.items():
                if self.hashes.setdefault(number, event["theta_hash"]) != event["theta_hash"]:
                    raise Violation(f"round {number}: {site.name} has another theta_global")
            code = site.process.poll()
            if code is None:
                site.check_process()
            elif code in RESTARTS or (code == UNSAVED and site.was_full):
                site.start()
            else:
                raise Violation(f"{site.name} ended with {code}:\n{site.log()}")
        for place, end in list(self.line_faults.items()):
            if time.monotonic() >= end:
                del self.line_faults[place]
                line = self.lines[place]
                line.may_pass.set()
                line.bytes_per_second = float("inf")
        if self.coordinator_returns_at is not None:
            if time.monotonic() >= self.coordinator_returns_at:
                self.coordinator.wait()
                journal = self.cluster.folder / "coordinator" / "coordinator.journal"
                if self.random.random() < LOST_JOURNALS:
                    journal.unlink(missing_ok=True)
                self.start_coordinator()
        elif self.coordinator.poll() is not None:
            log = (self.cluster.folder / "coordinator.txt").read_text(encoding="utf-8")
            raise Violation(f"the coordinator ended with {self.coordinator.returncode}:\n"
                            f"{log[-3000:]}")

    def harm(self):
        """Does one fault to a site, if another healthy one is left."""
        if self.lines and self.random.random() < 0.5:
            self.harm_line()
            return
        victims = [site for site in self.sites if site.wakes_at is None
                   and any(other.is_healthy() for other in self.sites if other is not site)]
        fault = self.random.choice(self.kinds)
        chance = self.random.random()
        if fault == COORDINATOR_FAULT and self.coordinator_returns_at is None:
            self.faults[fault] += 1
            self.coordinator.kill()
            self.coordinator_returns_at = time.monotonic() + self.random.uniform(*self.away_seconds)
        if fault == COORDINATOR_FAULT or not victims:
            return
        victim = victims[int(chance * len(victims))]
        self.faults[fault] += 1
        victim.is_ending = fault in ("is killed", "is stopped")
        if fault == CONNECTIONS_FAULT:
            break_connections(victim.process)
        elif fault == CLOCK_FAULT:
            jump_seconds = self.random.uniform(-MOST_JUMP_SECONDS, MOST_JUMP_SECONDS)
            victim.clock.write_text(f"{jump_seconds:+.3f}", encoding="utf-8")
        elif fault == DISK_FAULT:
            victim.was_full = True
            victim.disk.fill(time.monotonic() + self.random.uniform(*FULL_SECONDS))
        elif fault in FREEZE_SECONDS:
            victim.process.send_signal(signal.SIGSTOP)
            victim.wakes_at = time.monotonic() + self.random.uniform(*FREEZE_SECONDS[fault])
        else:
            victim.process.send_signal(
                signal.SIGKILL if fault == "is killed" else signal.SIGTERM)

    def harm_line(self):
        """Does one fault to a line that has none."""
        fault = self.random.choice(list(LINE_FAULTS))
        # The last line is that of the coordinator: if it falls silent, all sites are lost at once.
        place = self.random.randrange(len(self.lines) - (fault != "damages bytes"))
        if fault == JOIN_FAULT:
            victim = self.sites[place]
            others = (other for other in self.sites if other is not victim)
            if victim.wakes_at is not None or not any(other.is_healthy() for other in others):
                return
        end = time.monotonic() + self.random.uniform(*LINE_FAULTS[fault])
        if place in self.line_faults:
            return
        self.faults[f"a line {fault}"] += 1
        self.line_faults[place] = end
        line = self.lines[place]
        if fault == "is dead":
            line.may_pass.clear()
        elif fault in ("is slow", JOIN_FAULT):
            line.bytes_per_second = SLOW_BYTES_PER_SECOND
            if fault == JOIN_FAULT:
                victim.is_ending = True
                victim.process.kill()
        else:
            line.damages = DAMAGES

    def run(self, seconds: float):
        """Harms the sites for so long, and waits until all train together again."""
        end = time.monotonic() + seconds
        # Faults begin when the run has.
        self.wait_for(lambda: all(site.is_healthy() for site in self.sites), 60, "a first round")
        next_fault = time.monotonic()
        while time.monotonic() < end:
            self.watch()
            if time.monotonic() >= next_fault:
                self.harm()
                next_fault = time.monotonic() + self.random.expovariate(1 / MEAN_PAUSE_SECONDS)
            time.sleep(0.05)  # a pause between two looks at other processes
        newest = max(self.hashes)
        self.wait_for(lambda: len(set.intersection(
            *({number for number in site.rounds if number > newest} for site in self.sites)))
                      >= COMMON_ROUNDS, CALM_SECONDS, "a round of all sites after the faults")

    def wait_for(self, condition, seconds: float, what: str):
        """Watches the run until the condition holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n".join(f"== {site.name}\n{site.log()}" for site in self.sites)
                raise Violation(f"not within {seconds} s: {what}\n{logs}")
            self.watch()
            time.sleep(0.05)  # a pause between two looks at other processes

    def check_goodput(self) -> float:
        """The share of all inner steps that went into theta_global, but for those of a round under way."""
        newest = max(self.hashes)
        done = sum(steps for site in self.sites for number, steps in site.steps.items() if number <= newest)
        counted = sum(event["local_steps"] for site in self.sites for event in site.rounds.values())
        rounds = sum(self.faults.get(fault, 0) for fault in INTERRUPTIONS)
        if self.cluster.run.get("strategy", {}).get("kind") == "eager_updates":
            rounds *= 2
        most = max(steps for site in self.sites for steps in site.steps.values())
        if done - counted > max((1 - LEAST_GOODPUT) * done, rounds * most):
            raise Violation(f"{done - counted} of {done} inner steps do not count; at most "
                            f"{100 * (1 - LEAST_GOODPUT):.0f} % may be lost, or those of {rounds} rounds "
                            f"of {most}")
        return counted / done

    def end(self):
        """Ends all processes and lines."""
        for process in [*(site.process for site in self.sites), self.coordinator]:
            process.kill()
            process.wait()
        for line in self.lines:
            line.close()
        for site in self.sites:
            if site.disk:
                subprocess.run(["umount", "--lazy", site.disk.filler.parent], check=True)


def main() -> int:
    """Runs the chaos, and prints what happened; 1 if a check failed."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=None, help="default: drawn, and printed")
    parser.add_argument("--sites", type=int, default=4)
    parser.add_argument("--secure", action="store_true")
    parser.add_argument("--stand-bys", action="store_true")
    options = parser.parse_args()
    take_mount_namespace()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}, data {DATA}", flush=True)
    with tempfile.TemporaryDirectory(prefix="farstep-chaos-") as folder:
        # The exchange of the last variant makes connections of its own.
        variants = VARIANTS[:-1] if options.secure else VARIANTS
        variant = variants[seed % len(variants)]
        chaos = Chaos(Path(folder), options.sites, variant, seed, options.secure,
                      options.stand_bys)
        try:
            chaos.run(options.seconds)
            losses = validation_losses(chaos.cluster)
            first, last = losses[min(losses)], losses[max(losses)]
            if len(losses) >= VALIDATIONS_THAT_TEACH and not last < first:
                raise Violation(f"the loss went from {first:.3f} to {last:.3f}")
            goodput = chaos.check_goodput()
        except Violation as violation:
            print(f"VIOLATION (seed {seed}): {violation}", flush=True)
            return 1
        finally:
            chaos.end()
        print(f"{variant}: {max(chaos.hashes)} rounds, {sum(chaos.faults.values())} faults "
              f"({', '.join(f'{count} {fault}' for fault, count in chaos.faults.items())}), "
              f"{sum(site.starts for site in chaos.sites)} processes")
        print(f"{100 * goodput:.1f} % of all inner steps count; loss {first:.3f} -> {last:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
