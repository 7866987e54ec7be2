"""Runs a file of unittest, or the one test of that name in it: run_unittest.py FILE [METHOD].

Exit codes are those by which CTest knows what became of it: 0 if all tests passed, 77 if none failed
but some were skipped, whose reasons are printed, and 1 else, also where there is no such test.
"""

import importlib
import sys
import unittest
from pathlib import Path

SKIPPED = 77


def tests_of(suite: unittest.TestSuite):
    """All tests of a suite of suites."""
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from tests_of(part)
        else:
            yield part


def main(file: str, method: str | None = None) -> int:
    """Runs them; returns the exit code."""
    path = Path(file).resolve()
    sys.path[0] = str(path.parent)  # as if Python ran the file itself
    module = importlib.import_module(path.stem)
    loaded = tests_of(unittest.defaultTestLoader.loadTestsFromModule(module))
    # An exact name: others may begin with it.
    chosen = [test for test in loaded if method in (None, test.id().split(".")[-1])]
    if not chosen:
        print(f"{path.name} has no {method or 'tests'}")
        return 1
    result = unittest.TextTestRunner().run(unittest.TestSuite(chosen))
    if not result.wasSuccessful():
        return 1
    for _, reason in result.skipped:
        print(f"SKIPPED: {reason}")
    return SKIPPED if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
