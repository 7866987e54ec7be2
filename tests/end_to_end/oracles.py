"""The Python whose packages tests compare with: what scripts/setup.sh made, or another one."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

MADE = Path(__file__).resolve().parents[2] / ".deps/python/bin/python3"
# FARSTEP_ORACLE_PYTHON names another one.
PYTHON = os.environ.get("FARSTEP_ORACLE_PYTHON") or str(MADE if MADE.exists() else sys.executable)


def require_modules(*names: str):
    """Skips a test, and says what would mend that, unless PYTHON has them."""
    script = f"import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, {names})))"
    if subprocess.run([PYTHON, "-c", script], check=False, capture_output=True).returncode != 0:
        option = "--oracles" if "torch" in names else "--tests"
        raise unittest.SkipTest(f"this needs {' and '.join(names)} in Python: run scripts/setup.sh {option}")
