"""How scripts/test.sh builds, tests and counts, with a program that stands in for CMake.

CTest is the real one, over a few tests that are made up.
"""

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
echo "$*" >>"$(dirname "$0")/cmake.txt"
[ "$1" = --build ] || exit 0
echo "compiling $preset"
[ "$preset" != "${WARNING:-}" ] || echo "a.cpp:1:2: warning: unused variable"
[ "$preset" != "${BROKEN:-}" ] || { echo "$preset: no such type"; exit 1; }
[ "$preset" != "${HANGING:-}" ] || { sleep 600 & echo $! >"$(dirname "$0")/hanging.txt"; wait; }
"""
# The tests of a preset are those in the folder of its name.
CTEST = """
echo "$*" >>"$(dirname "$0")/ctest.txt"
preset=$2
[ "$preset" != "${HANGING_TESTS:-}" ] || { sleep 600 & echo $! >"$(dirname "$0")/hanging.txt"; wait; }
shift 2
# Thorough tests begin when the next build hangs, if it is to.
case "$*" in
  *--label-regex*) [ -z "${HANGING:-}" ] || timeout 60 sh -c "until [ -s $(dirname "$0")/hanging.txt ]; do sleep 0.05; done" ;;
esac
exec /usr/bin/ctest --test-dir "$preset" --output-on-failure "$@"
"""
THOROUGH = 'LABELS "end_to_end;thorough"'


def is_alive(number: int) -> bool:
    """Whether the process has not ended. One that nobody has asked how it ended has."""
    try:
        return Path(f"/proc/{number}/stat").read_text(encoding="utf-8").split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class TestScript(unittest.TestCase):
    """A tree of nothing but the script, with a test for each preset."""

    def setUp(self):
        self.tree = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tree)
        scripts = self.tree / "scripts"
        scripts.mkdir()
        for name in ("test.sh", "run_tests.py", "test_results.py", "script_help.sh"):
            shutil.copy(SOURCE / "scripts" / name, scripts)
        self.programs = StandIns(self.tree / "programs")
        self.programs.put("cmake", CMAKE)
        self.programs.put("ctest", CTEST)
        self.set_up("exit 0")
        self.put_tests("release", ("quick", "true", ""), ("slow", "true", THOROUGH))
        self.put_tests("asan", ("quick", "true", ""))
        self.put_tests("tsan", ("quick", "true", ""))

    def set_up(self, body: str):
        """What scripts/setup.sh does."""
        setup = self.tree / "scripts/setup.sh"
        setup.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        setup.chmod(0o755)

    def put_tests(self, preset: str, *tests: tuple[str, str, str]):
        """Tests of a preset: name, what the shell runs, properties besides those of all of Farstep's tests."""
        folder = self.tree / preset
        folder.mkdir(exist_ok=True)
        (folder / "CTestTestfile.cmake").write_text("".join(
            f'add_test("{name}" sh -c [[{body}]])\n'
            f'set_tests_properties("{name}" PROPERTIES SKIP_RETURN_CODE 77 {properties})\n'
            for name, body, properties in tests), encoding="utf-8")

    def run_tests(self, *arguments: str, **environment: str) -> tuple[int, list[str]]:
        """The script's exit status and lines."""
        result = self.programs.run("scripts/test.sh", *arguments, cwd=self.tree, **environment)
        self.assertEqual(result.stderr, "")
        return result.returncode, result.stdout.splitlines()

    def test_a_plain_run_leaves_out_what_is_thorough(self):
        status, lines = self.run_tests()
        self.assertEqual((status, lines[-1]), (0, "1 passed, 0 failed"))
        self.assertEqual([line for line in self.programs.take_lines("cmake.txt") if "--build" in line],
                         ["--build --preset release"])

    def test_a_thorough_run_does_all_of_it(self):
        status, lines = self.run_tests("--thorough")
        self.assertEqual((status, lines[-1]), (0, "4 passed, 0 failed"))
        self.assertEqual([line.split()[1] for line in self.programs.take_lines("ctest.txt")],
                         ["release", "release", "asan", "tsan"])

    def test_a_thorough_run_after_a_plain_one_of_the_same_tree_does_the_rest(self):
        """Whatever is not yet committed counts too."""
        def git(*arguments: str):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=self.tree,
                           check=True, capture_output=True)
        (self.tree / ".gitignore").write_text("/build/\n/programs/*.txt\n/*/Testing/\n__pycache__/\n", encoding="utf-8")
        git("init")
        git("add", ".")
        git("commit", "--message", "a")
        self.put_tests("release", ("quick", "exit 1", ""), ("slow", "true", THOROUGH))
        status, lines = self.run_tests()
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))
        self.programs.take_lines("ctest.txt")
        status, lines = self.run_tests("--thorough")
        # What failed before still counts.
        self.assertEqual((status, lines[-1]), (1, "3 passed, 1 failed"))
        self.assertEqual(len(self.programs.take_lines("ctest.txt")), 3)
        self.put_tests("release", ("quick", "true", ""), ("slow", "true", THOROUGH))
        status, lines = self.run_tests("--thorough")
        self.assertEqual((status, lines[-1]), (0, "4 passed, 0 failed"))
        self.assertEqual(len(self.programs.take_lines("ctest.txt")), 4)

    def test_a_failed_test_is_failed_whatever_it_prints(self):
        self.put_tests("release", ("good", "true", ""),
                       ("says so", "echo 'SKIPPED: no usable NVIDIA GPU'; exit 1", ""),
                       ("hangs", "sleep 60", "TIMEOUT 1"))
        (self.tree / "release/CTestTestfile.cmake").open("a", encoding="utf-8").write(
            'add_test("is not there" /nonexistent)\n')
        status, lines = self.run_tests()
        self.assertEqual((status, lines[-1]), (1, "1 passed, 3 failed"))
        self.assertEqual([line for line in lines if line.startswith("failed: ")],
                         ["failed: release: says so", "failed: release: hangs", "failed: release: is not there"])
        self.assertIn("SKIPPED: no usable NVIDIA GPU", lines)

    def test_a_test_is_run_once(self):
        self.put_tests("release", ("second try", f"test -e {self.tree}/tried || {{ touch {self.tree}/tried; exit 1; }}", ""))
        status, lines = self.run_tests()
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))

    def test_a_skip_is_good_only_for_what_this_machine_lacks(self):
        self.put_tests(
            "release", ("good", "true", ""),
            ("really", "echo 'SKIPPED: this processor has no sixth_sense'; exit 77", ""),
            ("not really", "echo 'SKIPPED: this processor has no fpu'; exit 77", ""),
            ("another reason", "echo 'SKIPPED: it rains'; exit 77", ""),
            ("one of two", "echo 'SKIPPED: this processor has no sixth_sense'; echo 'SKIPPED: it rains'; exit 77", ""),
            ("no reason", "exit 77", ""))
        status, lines = self.run_tests()
        self.assertEqual((status, lines[-1]), (1, "1 passed, 4 failed"))
        self.assertEqual([line for line in lines if line.startswith("failed: ")],
                         [f"failed: release: {name}" for name in ("not really", "another reason", "one of two", "no reason")])
        self.assertIn("    1 this processor has no sixth_sense", lines)
        self.assertIn("        release: really", lines)
        self.assertIn("skipped, though this machine has what it takes: it rains", lines)

    def test_no_tests_are_a_failure(self):
        self.put_tests("release")
        status, lines = self.run_tests()
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))

    def test_a_failed_build_is_shown_and_ends_it(self):
        status, lines = self.run_tests("--thorough", BROKEN="asan")
        self.assertEqual(lines[-1], "0 passed, 1 failed")
        self.assertIn("asan: no such type", lines)
        self.assertIn("building asan failed; all of its output is in build/test-results/building-asan.txt", lines)
        self.assertEqual(status, 1)
        self.assertNotIn("--build --preset tsan", self.programs.take_lines("cmake.txt"))

    def test_a_warning_fails_the_build(self):
        status, lines = self.run_tests(WARNING="release")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))
        self.assertIn("a.cpp:1:2: warning: unused variable", lines)

    def test_a_failure_ends_what_still_builds(self):
        self.put_tests("release", ("quick", "true", ""))
        status, lines = self.run_tests("--thorough", HANGING="asan")
        self.assertEqual(lines[-2:], ["no tests ran; all of the output is in build/test-results/testing-thorough.txt",
                                      "0 passed, 1 failed"])
        self.assertEqual(status, 1)
        self.assert_ended()

    def test_failed_set_up_of_oracles_is_the_end(self):
        self.set_up('[ "$1" = --tests ]')
        status, lines = self.run_tests()
        self.assertEqual((status, lines[-1]), (0, "1 passed, 0 failed"))
        status, lines = self.run_tests("--thorough")
        self.assertEqual(lines[-1], "0 passed, 1 failed")
        self.assertIn("setting up Python's packages failed; all of its output is in "
                      "build/test-results/setting-up-Python's-packages.txt", lines)
        self.assertEqual(status, 1)

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
