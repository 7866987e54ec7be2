#!/usr/bin/env python3
"""What waiting in a loop costs `farstep generate` on a quiet and on a busy machine.

A thread of OpenMP that waits for another turns in a loop for so many rounds before it sleeps
(GOMP_SPINCOUNT; libgomp's own default is 300000). One model continues one text with one thread, and
with --threads for each number of rounds, once in every turn and in an order that changes. Beside
them run so many processes of the same priority that never wait. The table has the time between two
tokens, as they reach the standard output: the median of all turns, the 99th of a hundred, and the
worst.

  tests/bench/busy_machine.py build/release/farstep MODEL [--data DATA] [--busy 6] [--threads 2]
      [--rounds 0 1000 10000 300000] [--tokens 200] [--turns 5]
"""

import argparse
import contextlib
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

DEADLINE_SECONDS = 600


@contextlib.contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """So many processes that use a core whenever they get one."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def token_seconds(arguments: argparse.Namespace, threads: int, rounds: int | None) -> list[float]:
    """Times between the pieces of one text. `rounds` None: the program's own choice."""
    command = [arguments.binary, "generate", arguments.model, "--prompt", "It is", "--temperature", "1",
               "--tokens", str(arguments.tokens), "--threads", str(threads)]
    if arguments.data:
        command += ["--data", arguments.data]
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    if rounds is not None:
        environment["GOMP_SPINCOUNT"] = str(rounds)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        assert process.stdout is not None
        times = []
        while os.read(process.stdout.fileno(), 4096):
            times.append(time.perf_counter())
        if process.wait(DEADLINE_SECONDS) != 0:
            raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    # The first piece is the prompt, the second waits for its reading, the last is the end.
    return [later - earlier for earlier, later in zip(times[2:-1], times[3:-1])]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--data", help="of the tokenizer, if the model has none")
    parser.add_argument("--busy", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, nargs="+", default=[0, 1000, 10000, 300000])
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()

    cases = {"1 thread": (1, None)}
    cases |= {f"{arguments.threads} threads, {rounds} rounds": (arguments.threads, rounds)
              for rounds in arguments.rounds}
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    order, draw = list(cases), random.Random(1)
    with busy_processes(arguments.busy):
        for _ in range(arguments.turns):
            draw.shuffle(order)
            for name in order:
                seconds[name] += token_seconds(arguments, *cases[name])
    print(f"| {arguments.busy} busy processes | median ms | 99th of 100 | worst |\n|---|---|---|---|")
    for name, values in seconds.items():
        percentile = statistics.quantiles(values, n=100)[98]
        print(f"| {name} | {1e3 * statistics.median(values):.2f} | {1e3 * percentile:.1f} | "
              f"{1e3 * max(values):.0f} |")


if __name__ == "__main__":
    main()
