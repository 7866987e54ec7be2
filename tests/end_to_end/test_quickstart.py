"""README's first command, from a clean clone: set-up, build, data, both trainings, reports and text."""

import json
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from cluster import REPOSITORY, ClusterTest

SITES = 4


class Quickstart(ClusterTest):
    """What git knows of this tree, and nothing else, but for what set-up has fetched before."""

    def clone(self) -> Path:
        """A copy of the files that a clone would have, also of those that are not committed yet."""
        clone = self.folder / "farstep"
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
                                cwd=REPOSITORY, capture_output=True, check=True).stdout
        for path in map(os.fsdecode, listed.split(b"\0")[:-1]):
            if (REPOSITORY / path).exists():  # it may be removed, and not yet for git
                (clone / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / path, clone / path)
        (clone / ".deps").symlink_to((REPOSITORY / ".deps").resolve())
        return clone

    def test_two_rounds_from_a_clean_clone(self):
        """It ends with two tables of idle time, text of the model, and two pages."""
        clone = self.clone()
        ended = subprocess.run(["scripts/quickstart.sh", "--rounds", "2"], cwd=clone, capture_output=True, text=True,
                               timeout=1500, check=False)
        self.assert_success(ended)
        runs = clone / "runs/quickstart"
        for policy in ("uniform", "hybrid"):
            page = (runs / f"{policy}.html").read_text(encoding="utf-8")
            self.assertTrue(all(f"node{site + 1}" in page for site in range(SITES)))
            report = subprocess.run([clone / "build/release/farstep", "report", runs / policy, "--json"],
                                    capture_output=True, text=True, check=True, timeout=60)
            self.assertEqual(json.loads(report.stdout)["rounds"], 2)
        tables = re.findall(r"^cause +node1 +node2 +node3 +node4 +total +share$", ended.stdout, re.MULTILINE)
        self.assertEqual(len(tables), 2, ended.stdout)
        self.assertIn("It is a truth universally", ended.stdout)


if __name__ == "__main__":
    unittest.main()
