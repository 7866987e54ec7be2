"""What the README claims of the programs and of its table, where a look at files can show it."""

import json
import os
import re
import subprocess
import unittest
from pathlib import Path

FARSTEP = Path(os.environ["FARSTEP_BINARY"])
README = Path("README.md").read_text(encoding="utf-8")


def row_of(name: str) -> list[str]:
    """The two figures of the row that begins so, of the table that matters."""
    return re.search(rf"^\| {name}[^|]*\| (.*?) \| (.*?) \|$", README, re.M).groups()


class Readme(unittest.TestCase):
    """The file as it is in the tree."""

    def test_a_site_needs_no_python(self):
        """Neither program loads it."""
        for program in (FARSTEP, FARSTEP.with_name("farstep-torch")):
            libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
            self.assertIn("libstdc++", libraries)
            self.assertNotIn("python", libraries)

    def test_the_table_is_of_the_quickstart_and_of_the_results(self):
        """Equal work is a product of the run file's numbers; what was measured is in the results."""
        run = json.loads(Path("configs/quickstart/run.json").read_text(encoding="utf-8"))
        rounds = run["outer"]["rounds"]
        tokens = (rounds * len(run["sites"]) * run["plan"]["base_steps"] * run["plan"]["base_batch"]
                  * run["data"]["sequence_length"])
        self.assertEqual(row_of("tokens trained")[0], f"{tokens:,}")
        self.assertIn(f"validation loss after {rounds} rounds", README)
        pages = [Path("docs/results.md"), *Path("docs/results").glob("*.md")]
        results = "\n".join(page.read_text(encoding="utf-8") for page in pages)
        for name in ("time spent waiting", "idle for any reason", "validation loss"):
            for figure in row_of(name):
                self.assertIn(figure, results, name)


if __name__ == "__main__":
    unittest.main()
