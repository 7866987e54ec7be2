"""How scripts/test.sh builds, tests and counts, with programs that stand in for CMake and CTest."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from stand_in import SOURCE, StandIns

# A build that hangs does so until it is ended, and then says so.
CMAKE = """
preset=$(printf '%s\\n' "$@" | grep -A1 -x -e --preset | tail -n 1)
echo "$1 $preset" >>"$(dirname "$0")/cmake.txt"
[ "$1" = --build ] || exit 0
echo "compiling $preset"
[ "$preset" != "${BROKEN:-}" ] || { echo "$preset: no such type"; exit 1; }
[ "$preset" != "${HANGING:-}" ] || { sleep 600 & echo $! >"$(dirname "$0")/hanging.txt"; wait; }
"""
CTEST = """
[ "$2" != "${HANGING_TESTS:-}" ] || { sleep 600 & echo $! >"$(dirname "$0")/hanging.txt"; wait; }
[ "$2" = asan ] && echo '50% tests passed, 1 tests failed out of 2' && exit 8
echo '100% tests passed, 0 tests failed out of 3'
"""


def is_alive(number: int) -> bool:
    """Whether the process has not ended. One that nobody has asked how it ended has."""
    try:
        return Path(f"/proc/{number}/stat").read_text(encoding="utf-8").split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class TestScript(unittest.TestCase):
    """A tree of nothing but the script."""

    def setUp(self):
        self.tree = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tree)
        scripts = self.tree / "scripts"
        scripts.mkdir()
        for name in ("test.sh", "script_help.sh"):
            shutil.copy(SOURCE / "scripts" / name, scripts)
        self.programs = StandIns(self.tree / "programs")
        self.programs.put("cmake", CMAKE)
        self.programs.put("ctest", CTEST)
        self.set_up("exit 0")

    def set_up(self, body: str):
        """What scripts/setup.sh does."""
        setup = self.tree / "scripts/setup.sh"
        setup.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        setup.chmod(0o755)

    def run_tests(self, **environment: str) -> tuple[int, list[str]]:
        """The script's exit status and lines."""
        result = self.programs.run("scripts/test.sh", cwd=self.tree, **environment)
        self.assertEqual(result.stderr, "")
        return result.returncode, result.stdout.splitlines()

    def test_it_counts_the_tests_of_all_presets(self):
        status, lines = self.run_tests()
        self.assertEqual(lines[-1], "7 passed, 1 failed")
        self.assertEqual(status, 1)
        self.assertEqual([line.split()[1] for line in lines if line.startswith("== ")],
                         ["release:", "asan:", "tsan:"])

    def test_a_failed_build_is_shown_and_ends_it(self):
        status, lines = self.run_tests(BROKEN="asan")
        self.assertEqual(lines[-1], "0 passed, 1 failed")
        self.assertIn("asan: no such type", lines)
        self.assertIn("the asan build failed", lines)
        self.assertEqual(status, 1)
        self.assertNotIn("--build tsan", self.programs.take_lines("cmake.txt"))

    def test_a_failure_ends_what_still_builds(self):
        # The release build tells that it is done; oracles fail while the next one hangs.
        self.set_up('[ "$1" = --tests ] && exit 0\n'
                    "timeout 60 sh -c 'until [ -s programs/hanging.txt ]; do sleep 0.05; done'\n"
                    "echo 'no network'; exit 1")
        status, lines = self.run_tests(HANGING="asan")
        self.assertEqual(lines[-3:], ["no network", "set-up of the oracles failed",
                                      "0 passed, 1 failed"])
        self.assertEqual(status, 1)
        self.assert_ended()

    def test_a_signal_ends_builds_and_tests(self):
        hanging = self.programs.folder / "hanging.txt"
        environment = {"PATH": f"{self.programs.folder}:/usr/bin:/bin", "HANGING_TESTS": "release"}
        with subprocess.Popen(["scripts/test.sh"], cwd=self.tree, env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as script:
            self.addCleanup(script.kill)
            deadline = time.monotonic() + 60
            while not (hanging.exists() and hanging.read_text(encoding="utf-8")):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)  # a pause between two looks at another process's file
            script.terminate()
            self.assertEqual(script.wait(timeout=60), 143)
        self.assert_ended()

    def assert_ended(self):
        """What hung is told to end, and does so a moment later."""
        number = int(self.programs.take_lines("hanging.txt")[0])
        deadline = time.monotonic() + 60
        while is_alive(number):
            if time.monotonic() > deadline:
                os.kill(number, signal.SIGKILL)
                self.fail("it hangs still")
            time.sleep(0.02)  # a pause between two looks at another process

    def test_failed_set_up_is_the_end(self):
        self.set_up("exit 3")
        status, lines = self.run_tests()
        self.assertEqual(lines, ["set-up failed", "0 passed, 1 failed"])
        self.assertEqual(status, 1)


if __name__ == "__main__":
    unittest.main()
