#!/usr/bin/env python3
"""How long torchft's survivors wait for a killed replica, and how soon it takes part again.

Replicas train a small model by torchft's DiLoCo on this machine, over the loopback interface (Gloo), as
its own example train_diloco.py does: 20 inner steps a round, AdamW, then Nesterov. A step takes
--step-seconds. One replica gets SIGKILL, in its steps or where it begins to exchange, and is started
again once the others commit. The lighthouse is as in torchft's README; other settings are its example's.

A line a kill: the time between two commits before; from the death until all survivors have committed;
and from the start of the new process until all replicas commit together. Commits are outer steps.
README.md says how to install it. rejoin.py and loss_stall.py are Farstep's counterparts.

  PYTHONPATH=build/torchft .deps/python/bin/python3 tests/bench/peers/torchft/survive.py [--replicas N]
      [--kills N] [--step-seconds S]
"""

import argparse
import contextlib
import importlib.metadata
import json
import os
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from peer_versions import described, pins  # noqa: E402  pylint: disable=wrong-import-position

SYNC_EVERY = 20  # inner steps, as in torchft's example
LIGHTHOUSE = {"min_replicas": 1, "quorum_tick_ms": 100, "join_timeout_ms": 10000}
EXCHANGE_SECONDS, MANAGER_SECONDS = 10, 30  # deadlines of its example
PLACES = ("steps", "exchange")
ROUNDS_BEFORE = 4
PATIENCE = 300  # seconds for anything
WIDTH = 256


def tell(**what: object):
    """An event of this replica, a line of JSON."""
    print(json.dumps({"time": time.time()} | what), flush=True)


def die_if(order: Path, place: str):
    """The death that was ordered for this place."""
    if order.exists() and order.read_text(encoding="utf-8") == place:
        order.unlink()
        tell(event="death")
        os.kill(os.getpid(), signal.SIGKILL)


def replica(number: int, lighthouse: str, step_seconds: float, order: Path):
    """Trains until it is killed, and tells every commit."""
    import torch
    from torchft import Manager, ProcessGroupGloo
    from torchft.checkpointing.http_transport import HTTPTransport
    from torchft.local_sgd import DiLoCo
    tell(event="imported")
    torch.set_num_threads(1)
    torch.manual_seed(number)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 10))
    inner = torch.optim.AdamW(model.parameters(), lr=4e-4, weight_decay=0.1, betas=(0.9, 0.95))
    outer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    parts = {"model": model, "inner_optim": inner, "outer_optim": outer}
    store = torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=EXCHANGE_SECONDS)), use_async_quorum=False,
        min_replica_size=1, replica_id=f"replica{number}", timeout=timedelta(seconds=MANAGER_SECONDS),
        load_state_dict=lambda state: [part.load_state_dict(state[name]) for name, part in parts.items()],
        state_dict=lambda: {name: part.state_dict() for name, part in parts.items()},
        checkpoint_transport=HTTPTransport(timeout=timedelta(seconds=EXCHANGE_SECONDS), num_chunks=0),
        store_addr="localhost", store_port=store.port, rank=0, world_size=1, lighthouse_addr=lighthouse,
        hostname="localhost")
    exchange = manager.allreduce

    def allreduce(*arguments: object, **named: object):
        die_if(order, "exchange")
        return exchange(*arguments, **named)
    manager.allreduce = allreduce
    with DiLoCo(manager, [model], inner, outer, sync_every=SYNC_EVERY, backup_device=torch.device("cpu")):
        for step in range(1, sys.maxsize):
            before = manager.current_step()
            inner.zero_grad()
            labels = torch.randint(10, (8,))
            torch.nn.functional.cross_entropy(model(torch.rand(8, WIDTH)), labels).backward()
            time.sleep(step_seconds)
            if step % SYNC_EVERY == SYNC_EVERY // 2:
                die_if(order, "steps")
            inner.step()
            if step % SYNC_EVERY == 0:
                is_committed = manager.current_step() > before
                tell(event="commit" if is_committed else "lost round", replicas=manager.num_participants())


class Event(NamedTuple):
    """What a replica told."""

    replica: int
    time: float
    kind: str
    replicas: int  # that committed together


class Run:
    """The lighthouse and the replicas, and what they tell."""

    def __init__(self, options: argparse.Namespace, folder: Path):
        from torchft.coordination import LighthouseServer
        self.options, self.folder = options, folder
        self.lighthouse = LighthouseServer(bind="[::]:0", **LIGHTHOUSE)
        self.address = f"http://localhost:{self.lighthouse.address().rpartition(':')[2]}"
        self.processes: dict[int, subprocess.Popen] = {}
        self.told: queue.Queue[Event] = queue.Queue()

    def order(self, number: int) -> Path:
        """The file by which a replica learns where to die."""
        return self.folder / f"die{number}"

    def start(self, number: int):
        """Starts a replica, and follows its output."""
        log = (self.folder / f"replica{number}.log").open("ab")
        command = [sys.executable, __file__, "--replica", str(number), "--lighthouse", self.address,
                   "--step-seconds", str(self.options.step_seconds), "--order", str(self.order(number))]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.processes[number] = process

        def follow():
            for line in process.stdout:
                if line.startswith("{"):
                    found = json.loads(line)
                    self.told.put(Event(number, found["time"], found["event"], found.get("replicas", 0)))
        threading.Thread(target=follow, daemon=True).start()

    def until(self, is_enough, what: str) -> list[Event]:
        """The events until they are enough; ends the program if they never are."""
        events: list[Event] = []
        deadline = time.monotonic() + PATIENCE
        while not is_enough(events):
            try:
                events.append(self.told.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                logs = "".join(path.read_text(encoding="utf-8")[-2000:] for path in self.folder.glob("*.log"))
                sys.exit(f"survive: {what} did not come in {PATIENCE} s:\n{logs}")
        return events

    def end(self):
        """Ends all."""
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.lighthouse.shutdown()


def commits(events: list[Event], numbers: range, replicas: int = 0) -> dict[int, list[float]]:
    """Times of the replicas' commits, of those only in which so many took part."""
    return {number: [one.time for one in events if one.replica == number and one.kind == "commit"
                     and replicas in (0, one.replicas)] for number in numbers}


def gaps(times: list[float]) -> list[float]:
    """Seconds between one and the next."""
    return [later - sooner for sooner, later in zip(times, times[1:])]


class Kill(NamedTuple):
    """A row of the table; seconds."""

    place: str
    round: float  # between two commits before
    stall: float  # from the death to the last survivor's next commit
    back: float  # from the start of the new process until all commit together
    imported: float  # of which until it has torch
    longest: float  # between two commits of a survivor meanwhile
    lost_rounds: str  # of all survivors


HEAD = ("killed in its", "a round (s)", "survivors' next commit after (s)", "back after (s)",
        "of which torch's import (s)", "longest time between commits meanwhile (s)", "survivors' rounds lost")


def one_kill(run: Run, place: str) -> Kill:
    """Kills the last replica and starts it again."""
    everyone, killed = range(run.options.replicas), run.options.replicas - 1
    survivors = range(killed)

    def all_have(events: list[Event], count: int, replicas: int = 0) -> bool:
        return all(len(times) >= count for times in commits(events, everyone, replicas).values())
    before = run.until(lambda events: all_have(events, ROUNDS_BEFORE, len(everyone)), "commits of all")
    first = commits(before, everyone, len(everyone))[0]
    run.order(killed).write_text(place, encoding="utf-8")
    died = run.until(lambda events: events and events[-1].kind == "death", "the death")[-1].time
    run.processes[killed].wait()
    after = run.until(lambda events: all(commits(events, survivors).values()), "the survivors' commits")
    stall = max(times[0] for times in commits(after, survivors).values()) - died
    started = time.time()
    run.start(killed)
    back = run.until(lambda events: all_have(events, 1, len(everyone)), "a commit of all")
    together = commits(back, everyone, len(everyone)).values()
    return Kill(place, statistics.median(gaps(first)), stall, max(times[0] for times in together) - started,
                next(one.time for one in back if one.kind == "imported") - started,
                max(max(gaps(times), default=0.0) for times in commits(after + back, survivors).values()),
                str(sum(one.kind == "lost round" for one in after)))


def versions() -> str:
    """Of torchft and torch, loud if they are not the pinned ones."""
    found = {name: importlib.metadata.version(name) for name in ("torchft", "torch")}
    return described(found, pins() | pins(Path(__file__).with_name("requirements.txt")))


def main():
    """Kills in turn at each place, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--kills", type=int, default=3, help="at each place")
    parser.add_argument("--step-seconds", type=float, default=0.1)
    for name in ("--replica", "--lighthouse", "--order"):  # of a replica's own process
        parser.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replica:
        replica(int(options.replica), options.lighthouse, options.step_seconds, Path(options.order))
        return
    print(f"{versions()}; {options.replicas} replicas, rounds of {SYNC_EVERY} steps of",
          f"{options.step_seconds} s\n\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="farstep-torchft-") as folder:
        run = Run(options, Path(folder))
        with contextlib.ExitStack() as stack:
            stack.callback(run.end)
            for number in range(options.replicas):
                run.start(number)
            for place in PLACES * options.kills:
                row = one_kill(run, place)
                print("| " + " | ".join(one if isinstance(one, str) else f"{one:.2f}" for one in row) + " |",
                      flush=True)


if __name__ == "__main__":
    main()
