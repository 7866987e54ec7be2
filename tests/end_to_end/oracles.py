"""The Python whose packages tests compare with: what scripts/setup.sh made, or another one."""

import os
import subprocess
import sys
from pathlib import Path

MADE = Path(__file__).resolve().parents[2] / ".deps/python/bin/python3"
# FARSTEP_ORACLE_PYTHON names another one.
PYTHON = os.environ.get("FARSTEP_ORACLE_PYTHON") or str(MADE if MADE.exists() else sys.executable)


def has_modules(*names: str) -> bool:
    """Whether PYTHON has them; else says that the test is skipped, and what would mend that."""
    script = f"import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, {names})))"
    if subprocess.run([PYTHON, "-c", script], check=False, capture_output=True).returncode == 0:
        return True
    option = "--oracles" if "torch" in names else "--tests"
    print(f"SKIPPED: this needs {' and '.join(names)} in Python: run scripts/setup.sh {option}", flush=True)
    return False
