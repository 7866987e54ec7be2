"""How CTest knows what became of any test of this build, and how programs of tests end."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["FARSTEP_BUILD_FOLDER"])
RUN_UNITTEST = Path(__file__).resolve().parents[1] / "support/run_unittest.py"
CASES = """
import unittest
class Cases(unittest.TestCase):
    def test_good(self): pass
    def test_good_but_longer(self): self.fail()
    def test_skipped(self): self.skipTest("it rains")
    def test_skipped_in_a_part(self):
        with self.subTest(): self.skipTest("it rains")
        with self.subTest(): self.fail()
    @unittest.skipIf(True, "it rains")
    def test_marked(self): self.fail()
"""


class EveryTest(unittest.TestCase):
    """The lists of all presets are made by the same few functions."""

    def test_a_test_is_judged_by_its_exit_code_alone(self):
        listed = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, check=True)
        tests = json.loads(listed.stdout)["tests"]
        self.assertGreater(len(tests), 100)
        for test in tests:
            names = {each["name"] for each in test["properties"]}
            self.assertFalse({name for name in names if name.endswith("REGULAR_EXPRESSION")}, test["name"])
            self.assertFalse({"WILL_FAIL", "DISABLED"} & names, test["name"])


class ExitCodes(unittest.TestCase):
    """77 if a test was skipped and none failed."""

    def end_of(self, *command: object) -> tuple[int, bool]:
        """Its exit code, and whether it says why it was skipped."""
        result = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, check=False)
        return result.returncode, "\nSKIPPED: it rains\n" in "\n" + result.stdout

    def test_of_a_program(self):
        for name, expected in (("one that is skipped", (77, True)), ("one that passes", (0, False)),
                               ("one that fails after it was skipped", (1, True))):
            self.assertEqual(self.end_of(BUILD / "skipped_cases", name), expected, name)

    def test_of_a_file_of_unittest(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "test_cases.py"
            file.write_text(CASES, encoding="utf-8")
            for method, expected in (("test_good", (0, False)), ("test_good_but_longer", (1, False)),
                                     ("test_skipped", (77, True)), ("test_skipped_in_a_part", (1, False)),
                                     ("test_marked", (77, True)), ("test_g", (1, False))):
                self.assertEqual(self.end_of(sys.executable, RUN_UNITTEST, file, method), expected, method)


if __name__ == "__main__":
    unittest.main()
