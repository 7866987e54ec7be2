"""Builds presets and runs their tests for scripts/test.sh, which says what is run.

Each command's output goes to a file in build/test-results; a line a minute says how far they are.
"""

import argparse
import hashlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from test_results import Results

RESULTS = Path("build/test-results")
TREE = RESULTS / "tree.txt"  # which tree the results of the plain run are of
LINES_SHOWN = 60  # of a command that fails


class Failed(Exception):
    """What a user reads instead of counts."""


class Job:
    """A command in a process group of its own, which ends with this program. Its output goes to a file."""

    running: list["Job"] = []

    def __init__(self, title: str, *command: str, idle: bool = False):
        self.title = title
        self.log = RESULTS / f"{title.replace(' ', '-')}.txt"
        # Not a session of its own: between sessions the kernel shares the processor whatever their niceness.
        prefix = ("nice", "-n", "19") if idle else ()
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen((*prefix, *command), stdout=log, stderr=subprocess.STDOUT,
                                            stdin=subprocess.DEVNULL, process_group=0)
        Job.running.append(self)

    def wait(self) -> int:
        """Waits for its end; returns its exit code."""
        code = self.process.wait()
        Job.running.remove(self)
        return code

    def require_success(self):
        """Waits for its end, which must be a good one."""
        if self.wait() != 0:
            raise Failed(f"{self.last_lines()}\n{self.title} failed; all of its output is in {self.log}")

    def text(self) -> str:
        """Its output so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def last_lines(self) -> str:
        """The end of its output."""
        return "\n".join(self.text().splitlines()[-LINES_SHOWN:])

    def progress(self) -> str:
        """How far it is: of a build the last step, of tests how many have ended, and how many failed."""
        text = self.text()
        steps = re.findall(r"^\[(\d+/\d+)\]", text, re.MULTILINE)
        tests = re.findall(r"^ *(\d+/\d+) Test ", text, re.MULTILINE)
        failed = len(re.findall(r"\*\*\*(?:Failed|Timeout|Exception|Not Run)", text))
        last = (tests or steps or [""])[-1].replace("/", " of ")
        return f"{self.title} {last}".strip() + (f", {failed} failed" if failed else "")

    @classmethod
    def end_all(cls):
        """Ends what still runs, with all that it has started."""
        for job in list(cls.running):
            try:
                os.killpg(job.process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass  # it has ended meanwhile


def show_progress(began: float):
    """Prints a line a minute, for ever."""
    ended = threading.Event()  # nobody sets it: the thread ends with the program
    while not ended.wait(60):
        minutes = round((time.monotonic() - began) / 60)
        print(f"{minutes:3} min: " + "; ".join(job.progress() for job in list(Job.running)), flush=True)


def build(preset: str, *options: str, idle: bool = False):
    """Configures and builds a preset. Warnings are errors, also where the preset lets users off."""
    settings = ("cmake", "--preset", preset, "-DFARSTEP_TESTS=ON", *options)
    Job(f"configuring {preset}", *settings, idle=idle).require_success()
    job = Job(f"building {preset}", "cmake", "--build", "--preset", preset, idle=idle)
    job.require_success()
    if warnings := [line for line in job.text().splitlines() if re.search(r"\bwarning ?: ", line)]:
        raise Failed("\n".join(warnings[:LINES_SHOWN]) + f"\n{job.title} gave warnings; see {job.log}")


def test(preset: str, name: str, *selection: str):
    """Runs tests of a preset. Their results go to NAME.xml; which fail does not matter here."""
    junit = RESULTS.resolve() / f"{name}.xml"
    job = Job(f"testing {name}", "ctest", "--preset", preset, "--no-tests=error", "--output-junit", str(junit),
              "--test-output-size-passed", "1000000", *selection)
    job.wait()
    if not junit.exists() or "<testcase" not in junit.read_text(encoding="utf-8"):
        raise Failed(f"{job.last_lines()}\nno tests ran; all of the output is in {job.log}")
    print(f"done: {job.progress()}", flush=True)


def plain():
    """What users run, and the tests that any change can break."""
    build("release", "-DFARSTEP_ALL_TESTS=OFF")
    test("release", "release", "--label-exclude", "thorough")


def thorough():
    """The rest. A build takes only the processor time that tests leave, most of which wait for timers."""
    built: queue.Queue[str | Failed] = queue.Queue()

    def build_all():
        try:
            for preset, options in (("release", ["-DFARSTEP_ALL_TESTS=ON"]), ("asan", []), ("tsan", [])):
                build(preset, *options, idle=preset != "release")
                built.put(preset)
        except Failed as failure:
            built.put(failure)

    oracles = Job("setting up Python's packages", "scripts/setup.sh", "--oracles")
    threading.Thread(target=build_all, daemon=True).start()
    oracles.require_success()
    for name, selection in (("thorough", ("--label-regex", "thorough")), ("asan", ()), ("tsan", ())):
        preset = built.get()
        if isinstance(preset, Failed):
            raise preset
        test(preset, name, *selection)


def other_debians():
    """README's two commands in a bare Debian 13, and all of Farstep by its clang."""
    for options in ((), ("--clang",)):
        Job(" ".join(("trying trixie", *options)), "scripts/other_debian.sh", *options, "trixie").require_success()


def tree() -> str:
    """A hash of this tree as it is now; empty if it is not of git."""
    def git(*arguments: str) -> bytes:
        return subprocess.run(("git", *arguments), capture_output=True, check=True).stdout
    try:
        state = git("rev-parse", "HEAD") + git("diff", "HEAD", "--binary")
        for path in git("ls-files", "--others", "--exclude-standard", "-z").split(b"\0")[:-1]:
            state += path + Path(os.fsdecode(path)).read_bytes()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return hashlib.sha256(state).hexdigest()


def is_known() -> bool:
    """Whether a plain run of just this tree has ended."""
    return TREE.exists() and TREE.read_text(encoding="utf-8") == tree() != ""


def count() -> int:
    """Prints the results of all parts; returns the exit code."""
    results = Results()
    for junit in sorted(RESULTS.glob("*.xml")):
        results.add(junit)
    results.print()
    return 1 if results.failed else 0


def run(options: argparse.Namespace) -> int:
    """Runs the parts that are asked for; returns the exit code."""
    before = tree()
    if not (options.thorough and is_known()):
        for old in RESULTS.iterdir():
            old.unlink()
        plain()
        TREE.write_text(before, encoding="utf-8")
    if options.thorough:
        thorough()
    if options.other_debians:
        other_debians()
    return count()


def main() -> int:
    """Parses the arguments; whatever ends this program ends what it has started."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--thorough", action="store_true")
    parser.add_argument("--other-debians", action="store_true")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    threading.Thread(target=show_progress, args=(time.monotonic(),), daemon=True).start()
    try:
        return run(options)
    except Failed as failure:
        print(f"{failure}\n0 passed, 1 failed")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        Job.end_all()


if __name__ == "__main__":
    sys.exit(main())
