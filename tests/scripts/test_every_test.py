"""How CTest knows what became of any test of this build, and how programs of tests end."""

import ast
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


def needs_torch(function: ast.FunctionDef) -> bool:
    """Whether it asks for PyTorch in Python."""
    return any(isinstance(call, ast.Call) and getattr(call.func, "id", "") == "require_modules"
               and "torch" in [getattr(argument, "value", "") for argument in call.args]
               for call in ast.walk(function))


def tests_with_torch(file: Path) -> list[str]:
    """The methods of a file of unittest that need PyTorch in Python, by themselves or by their class's setUp."""
    found = []
    for group in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(group, ast.ClassDef):
            methods = {method.name: method for method in group.body if isinstance(method, ast.FunctionDef)}
            all_need_it = "setUp" in methods and needs_torch(methods["setUp"])
            found += [name for name, method in methods.items()
                      if name.startswith("test_") and (all_need_it or needs_torch(method))]
    return found


class EveryTest(unittest.TestCase):
    """The lists of all presets are made by the same few functions."""

    def setUp(self):
        listed = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, check=True)
        self.tests = {test["name"]: {each["name"]: each["value"] for each in test["properties"]}
                      for test in json.loads(listed.stdout)["tests"]}
        self.assertGreater(len(self.tests), 100)

    def test_a_test_is_judged_by_its_exit_code_alone(self):
        for name, properties in self.tests.items():
            self.assertFalse([each for each in properties if each.endswith("REGULAR_EXPRESSION")], name)
            self.assertFalse({"WILL_FAIL", "DISABLED"} & set(properties), name)

    def test_what_needs_pytorch_in_python_is_thorough(self):
        """Set-up brings it for those tests alone."""
        files = sorted((Path(__file__).resolve().parents[1] / "end_to_end").glob("test_*.py"))
        named = [f"end_to_end: {file.stem}.{method}" for file in files for method in tests_with_torch(file)]
        self.assertGreater(len(named), 5)
        for name in named:
            if name in self.tests:  # a preset may leave it out
                self.assertIn("thorough", self.tests[name]["LABELS"], name)


class ExitCodes(unittest.TestCase):
    """77 if a test was skipped and none failed."""

    def end_of(self, *command: object) -> tuple[int, bool]:
        """Its exit code, and whether it says why it was skipped."""
        result = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, check=False)
        return result.returncode, "\nSKIPPED: it rains\n" in "\n" + result.stdout

    def test_of_a_program(self):
        for name, expected in (("one that is skipped", (77, True)), ("one that passes", (0, False))):
            self.assertEqual(self.end_of(BUILD / "skipped_cases", name), expected, name)
        code, is_said = self.end_of(BUILD / "skipped_cases", "one that fails after it was skipped")
        self.assertTrue(is_said)
        self.assertIn(code, (1, 42))  # of Catch2 2 and 3

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
