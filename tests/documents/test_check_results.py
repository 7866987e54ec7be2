"""check_results.py finds each fault that it is for, and none in what has the form."""

import unittest
from pathlib import Path

import check_results
from check_links import tracked

TABLE = "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
PAGE = Path("docs", "results", "a.md")


def form(machine="two cores", date="2026-11-28", commit="recorded in commit 84950dd4",
         how="`build/release/step --preset 7m`") -> str:
    return f"Measured: {machine} · {date} · {commit} · {how}"


class CheckResults(unittest.TestCase):
    """Over pages of a few lines."""

    def faults(self, text: str, is_strict: bool = True) -> str:
        return "\n".join(check_results.faults_of_page(PAGE, text, is_strict))

    def test_what_has_the_form_has_no_fault(self):
        """Also wrapped, with two commits, and where it cannot be repeated."""
        for text in (form(), form().replace(" · ", " ·\n"),
                     form(how="`scripts/test.sh`, `farstep report --json`"),
                     form(date="2026-11-21 to 2026-11-22"), form(commit="commits 84950dd4, 6cf88cb6"),
                     form(how="`A=b chrt -r 1 build/release/step` · cannot be repeated: no file"),
                     form(how="cannot be repeated: no file"), form().replace("Measured", "Simulated"),
                     form() + TABLE + "\nThe same.\n\n" + check_results.SAME_RUN):
            self.assertEqual(self.faults(text + TABLE), "")
        self.assertEqual(self.faults("```text\nMeasured: x\n| a |\n```\n"), "")
        self.assertEqual(self.faults("A text." + TABLE, is_strict=False), "")

    def test_faults_are_found(self):
        """Of each kind, with the line."""
        for text, fault in (("A text.", "a.md:3: no paragraph"), ("A text.\n| a |", "a.md:2: no paragraph"),
                            (check_results.SAME_RUN, "a.md:1: no table above"),
                            ("Measured: here", "the fields are"), (form(machine="-"), "no machine"),
                            (form(date="2026-13-01"), "is no date"), (form(commit="commit abc"), "names no"),
                            (form(how="`tests/bench/no_such.py`"), "no program tests/bench/no_such.py"),
                            (form(how="`build/release/no_such`"), "no program build/release/no_such"),
                            (form(how="`python3`"), "has no program"), (form(how="by hand"), "in backquotes"),
                            (form(commit="joined into commit 84950dd4"), "cannot be repeated")):
            self.assertIn(fault, self.faults(text + TABLE))

    def test_a_commit_must_be_in_the_history(self):
        """Where there is one."""
        if not check_results.history():
            self.skipTest("SKIPPED: no full history")
        self.assertIn("00000000 is not in the history", self.faults(form(commit="commit 00000000") + TABLE))

    def test_all_pages_of_results_are_read(self):
        """Those of experiments too."""
        pages = tracked("docs/results/*.md")
        strict = [page for page in pages if not check_results.is_experiment(page)]
        self.assertGreater(len(strict), 15)
        self.assertGreaterEqual(len(pages) - len(strict), 7)


if __name__ == "__main__":
    unittest.main()
