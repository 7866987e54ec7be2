"""Every script answers --help, and refuses what it does not know, without doing anything."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from stand_in import SOURCE

FOLDERS = ("scripts", "tests/bench", "tests/end_to_end")
# torch or tokenizers, before they read arguments
NEED_A_LIBRARY = ("reference_convnets.py", "reference_folders.py", "reference_muon.py",
                  "reference_numerics.py", "reference_parquet.py", "reference_tokenizers.py", "generate_speed.py",
                  "peer_model.py")

OF_A_PACKAGE = ("postinst",)  # dpkg starts it


def scripts() -> list[Path]:
    """What a user may start, from the root of the tree."""
    return [path.relative_to(SOURCE) for folder in FOLDERS for path in sorted((SOURCE / folder).rglob("*"))
            if path.is_file() and os.access(path, os.X_OK) and path.name not in (*NEED_A_LIBRARY, *OF_A_PACKAGE)
            and path.read_bytes().startswith(b"#!")]


class ScriptHelp(unittest.TestCase):
    """A copy of the scripts, to see what they write."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for folder in FOLDERS:
            shutil.copytree(SOURCE / folder, self.folder / folder,
                            ignore=shutil.ignore_patterns("__pycache__"))

    def files(self) -> list[Path]:
        """All that lies in the copy."""
        return sorted(self.folder.rglob("*"))

    def run_script(self, script: Path, *arguments: str) -> subprocess.CompletedProcess:
        """Runs the copy of a script."""
        return subprocess.run([self.folder / script, *arguments], cwd=self.folder,
                              env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
                              capture_output=True, text=True, check=False, timeout=60)

    def test_help_is_told_and_nothing_done(self):
        """With code 0, on the output, with a usage line."""
        before = self.files()
        self.assertGreater(len(scripts()), 15)
        for script in scripts():
            for flag in ("--help", "-h"):
                with self.subTest(script=script, flag=flag):
                    result = self.run_script(script, flag)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertIn("usage:", result.stdout.lower())
                    self.assertIn(script.name, result.stdout)
                    self.assertEqual(self.files(), before)

    def test_an_unknown_argument_is_refused(self):
        """With code 2, and nothing done."""
        before = self.files()
        for script in scripts():
            with self.subTest(script=script):
                result = self.run_script(script, "--no-such-argument")
                self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                self.assertIn("usage:", result.stderr.lower())
                self.assertRegex(result.stderr, "--no-such-argument|arguments are required")
                self.assertEqual(self.files(), before)


if __name__ == "__main__":
    unittest.main()
