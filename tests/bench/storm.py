#!/usr/bin/env python3
"""Trains while sites are killed, cut off and stopped, and compares it with a run without faults.

Sites of a tiny model train on this machine; a step takes an emulated time. A kill -9 comes every 25 s on
average, with a restart 5 s later (--resume=auto). A site's line drops all packets for 10 to 40 s, and a
process is stopped (SIGSTOP) for 5 to 60 s, each every 60 s on average. The faults are drawn from --seed
beforehand, and listed. The deadlines are the defaults. Cuts need root: each site is in a network namespace
(scripts/wan_lab). 32 sites need 7 GB.

A run without faults comes first, which gives the seconds of a round. They are kept in a file, by the build
and the options, and measured anew with --fresh. Then comes the storm, and one row of a table. Its commits
are those within --seconds; the ways back count until the storm's end and --calm seconds more, in which all
sites are to train together again. A site that ends by itself with code 4 is started again after 5 s, and
with another code it is not; both are unexpected ends.

Usage: FARSTEP_BINARY=... FARSTEP_TEST_DATA=... WAN_LAB_BINARY=... tests/bench/storm.py [--sites N]
       [--seconds S] [--seed N] [--keys] [--host] [--no-cuts] [--no-stops] ...
"""

import argparse
import contextlib
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import storm_faults
import storm_figures
from storm_faults import CUT, KILL, STOP, Fault
from storm_sites import DATA, Party, identity_of_binary, obstacle

PUBLISHED = ("Published, of torchft: 32 replicas, 125 faults an hour, 97.7 % of the commits with about 16 of 32 "
             "taking part, back after 149 s.")


def run_of(options: argparse.Namespace) -> dict:
    """What the run file says besides what all tests' say."""
    return {"name": "storm", "min_sites": options.min_sites, "outer": {"rounds": 1_000_000},
            "plan": {"base_steps": options.steps, "base_batch": 1},
            "evaluate": {"every_rounds": 0}, "checkpoint": {"every_rounds": 5}}


@contextlib.contextmanager
def party(options: argparse.Namespace, kind: str):
    """A run's processes, which end with it; their files stay if a folder was asked for."""
    with contextlib.ExitStack() as stack:
        if options.folder:
            folder = options.folder.resolve() / kind
            folder.mkdir(parents=True)
        else:
            folder = Path(stack.enter_context(
                tempfile.TemporaryDirectory(prefix=f"farstep-{kind}-", ignore_cleanup_errors=True)))
        run = Party(folder, options.sites, run_of(options), options.step_seconds, secure=options.keys,
                    hosts=options.host, has_lab=not options.no_cuts)
        stack.callback(run.close)
        yield run


def reference(options: argparse.Namespace) -> float:
    """Seconds of a round without faults: from the file, or measured and written there."""
    key = json.dumps([identity_of_binary(), run_of(options), options.sites, options.step_seconds, options.keys,
                      options.host, options.no_cuts])
    known = json.loads(options.reference.read_text(encoding="utf-8")) if options.reference.exists() else {}
    if key in known and not options.fresh:
        print(f"{options.reference}: a round without faults takes {known[key]:.2f} s", flush=True)
        return known[key]
    with party(options, "reference") as run:
        begin = run.start()
        run.wait(lambda: False, options.reference_seconds)
        seconds = storm_figures.seconds_a_round(storm_figures.commits(run.records(), begin, time.time()))
        if wrong := run.interrupt():
            raise AssertionError("without faults ended otherwise than asked: " + ", ".join(wrong))
    options.reference.write_text(json.dumps(known | {key: seconds}, indent=1), encoding="utf-8")
    print(f"a round without faults takes {seconds:.2f} s, now in {options.reference}", flush=True)
    return seconds


def harm(run: Party, fault: Fault):
    """Begins a fault."""
    site = run.site(fault.site)
    if fault.kind == KILL:
        site.kill(fault.seconds)
    elif fault.kind == CUT:
        run.cut(fault.site, True)
    else:
        site.send(signal.SIGSTOP)


def mend(run: Party, fault: Fault):
    """Ends a fault; a killed site is started again by its supervisor."""
    if fault.kind == CUT:
        run.cut(fault.site, False)
    elif fault.kind == STOP:
        run.site(fault.site).send(signal.SIGCONT)


def blow(run: Party, faults: list[Fault], seconds: float):
    """Does the faults, each in its time; what lasts at the end is ended then."""
    actions = sorted([(fault.at, harm, fault) for fault in faults]
                     + [(min(fault.end, seconds), mend, fault) for fault in faults], key=lambda action: action[0])
    begin = time.monotonic()
    for at, act, fault in actions:
        run.wait(lambda at=at: time.monotonic() - begin >= at, seconds)
        act(run, fault)
        print(f"{time.monotonic() - begin:6.1f} s: {'begins' if act is harm else 'ends'}: {fault.kind} {fault.site}",
              flush=True)
    run.wait(lambda: False, seconds - (time.monotonic() - begin))


def all_contribute(run: Party, since: float) -> bool:
    """Whether a round since then has the steps of all sites."""
    found = storm_figures.commits(run.records(), since, time.time())
    return any(len(commit.steps) == len(run.sites) for commit in found)


def storm(options: argparse.Namespace, faults: list[Fault], round_seconds: float) -> dict[str, str]:
    """The columns of the table's row."""
    with party(options, "storm") as run:
        begin = run.start()
        blow(run, faults, options.seconds)
        end = time.time()
        memory_bytes = run.memory_bytes()
        is_calm = run.wait(lambda: all_contribute(run, end), options.calm)
        calm_seconds = time.time() - end
        wrong = run.interrupt()
        figures = storm_figures.Storm(
            records=run.records(), begin=begin, end=end,
            kills=sorted(((site.name, at) for site in run.sites for at in site.kills), key=lambda kill: kill[1]),
            round_seconds=round_seconds, step_seconds=options.step_seconds, round_steps=options.steps)
    done = Counter(fault.kind for fault in faults)
    return {"sites": str(options.sites), "keys": "yes" if options.keys else "no",
            "coordinator": "at a site" if options.host else "own process", "seconds": f"{end - begin:.0f}",
            "kills, cuts, stops": f"{done[KILL]}, {done[CUT]}, {done[STOP]}",
            **figures.columns(),
            "unexpected ends": ", ".join(wrong) or "0",
            "all together again after (s)": f"{calm_seconds:.0f}" if is_calm else "no",
            "memory (GB)": f"{memory_bytes / 1e9:.1f}"}


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=480, help="of the storm")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keys", action="store_true", help="links are encrypted")
    parser.add_argument("--host", action="store_true", help="the first site hosts the coordinator, and is harmed too")
    parser.add_argument("--spare-host", action="store_true", help="the first site is not harmed")
    parser.add_argument("--min-sites", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20, help="of a round")
    parser.add_argument("--step-seconds", type=float, default=0.5)
    parser.add_argument("--kill-every", type=float, default=25, metavar="S", help="mean pause; 0: never")
    parser.add_argument("--cut-every", type=float, default=60, metavar="S")
    parser.add_argument("--stop-every", type=float, default=60, metavar="S")
    parser.add_argument("--no-cuts", action="store_true", help="on the loopback interface, without a lab")
    parser.add_argument("--no-stops", action="store_true")
    parser.add_argument("--calm", type=float, default=120, metavar="S", help="after the storm, at most")
    parser.add_argument("--reference-seconds", type=float, default=120, metavar="S", help="of the run without faults")
    parser.add_argument("--reference", type=Path, default=DATA.parent / "storm_reference.json", metavar="FILE",
                        help="where the seconds of a round without faults are kept")
    parser.add_argument("--fresh", action="store_true", help="measure them anew")
    parser.add_argument("--folder", type=Path, help="keeps configs, logs and records in this new folder")
    options = parser.parse_args()
    if options.sites < 2:
        parser.error("--sites: at least 2")
    if options.folder and options.folder.exists():
        parser.error(f"--folder {options.folder}: is there already")
    if not options.no_cuts and (lacks := obstacle()):
        parser.error(f"{lacks}: give --no-cuts")
    return options


def main() -> int:
    """Prints the faults, what happens, and the row."""
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # everything ends with this program
    names = [f"node{place + 1}" for place in range(options.sites)]
    faults = storm_faults.draw(options.seed, options.seconds, names[1:] if options.spare_host else names,
                               {KILL: options.kill_every, CUT: 0 if options.no_cuts else options.cut_every,
                                STOP: 0 if options.no_stops else options.stop_every})
    print(f"seed {options.seed}, {len(faults)} faults:", *faults, sep="\n", flush=True)
    round_seconds = reference(options)
    columns = storm(options, faults, round_seconds)
    print(f"\n{storm_figures.table(columns)}\n\n{PUBLISHED}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
