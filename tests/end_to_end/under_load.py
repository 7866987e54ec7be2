#!/usr/bin/env python3
"""Runs the end-to-end tests several times in a row beside busy processes: none may fail.

Other work on the machine may take their place (--load 0): the load average is printed.

A run that has ended is kept below the build folder, and is not repeated by another call.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "scripts"))
from test_results import Results  # noqa: E402 (its folder is known only now)


@contextlib.contextmanager
def load(processes: int):
    """Keeps so many processes busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def run(command: list, log) -> list[float]:
    """Runs the command to its end; returns the machine's load average every 10 seconds."""
    loads = []
    with subprocess.Popen(command, stdout=log, stderr=log) as process:
        while True:
            loads.append(os.getloadavg()[0])
            try:
                process.wait(10)
                return loads
            except subprocess.TimeoutExpired:
                pass


def main() -> int:
    """Prints a line a run, and what failed in any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/release")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--load", type=int, default=6, help="busy processes beside them")
    parser.add_argument("--tests", default=".", help="a regular expression of tests' names: these alone")
    options = parser.parse_args()
    folder = options.build.resolve() / "under_load"
    folder.mkdir(exist_ok=True)
    failed = 0
    for time in range(1, options.times + 1):
        junit = folder / f"{time}.xml"
        if not junit.exists():
            with load(options.load), open(folder / f"{time}.txt", "w", encoding="utf-8") as log:
                loads = run(["ctest", "--test-dir", options.build, "--label-regex", "end_to_end", "--parallel", "6",
                             "--tests-regex", options.tests, "--output-on-failure", "--no-tests=error",
                             "--test-output-size-passed", "1000000", "--output-junit", junit], log)
            (folder / f"{time}.load").write_text(f"{statistics.median(loads):.1f}\n")
        results = Results()
        results.add(junit)
        if not results.passed and not results.failed:
            raise SystemExit(f"under_load: no test ran; see {junit.with_suffix('.txt')}, and delete {folder}")
        failed += len(results.failed)
        machine_load = junit.with_suffix(".load").read_text().strip()
        print(f"run {time}, load average {machine_load}: {results.passed} passed, {len(results.failed)} failed"
              + "".join(f"\n  failed: {name}" for name in results.failed), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
