"""`farstep tokenize` that is interrupted, and what the same command makes of it; Parquet files."""

import gzip
import json
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from cluster import DATA, FARSTEP, REPOSITORY, farstep, wait_until


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Tokenize(unittest.TestCase):
    """A corpus that takes some seconds, of text, lines and a compressed file."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        corpus = sorted((REPOSITORY / ".deps/corpus/austen").glob("*.txt"))
        novels = [path.read_text(encoding="utf-8") for path in corpus]
        text = self.folder / "text"
        text.mkdir()
        with (text / "b.jsonl").open("w", encoding="utf-8") as lines:
            for repeat in range(3):
                for novel in novels:
                    for part in novel.split("\n\n"):
                        lines.write(json.dumps({"text": f"{repeat} {part}"}) + "\n")
        (text / "a.txt").write_text("\n".join(novels), encoding="utf-8")
        (text / "c.txt.gz").write_bytes(gzip.compress("\n".join(reversed(novels)).encode(), 1))

    def command(self, output: str, *options: object) -> list[str]:
        """One thread, so that the work takes a while."""
        return list(map(str, ("tokenize", self.folder / "text", "--output", self.folder / output, "--threads", 1,
                              "--shard-tokens", 200_000, "--train-vocabulary", 1000, *options)))

    def saved(self) -> dict | None:
        """What the unfinished folder says of itself."""
        try:
            return json.loads((self.folder / "data.partial/unfinished.json").read_text())
        except FileNotFoundError:
            return None

    def tokens_saved(self) -> int:
        """Of both splits."""
        state = self.saved()
        return sum(state[split]["facts"]["tokens"] for split in ("train", "validation")) if state else -1

    def interrupt(self, signal_number: int, tokens: int) -> tuple[int, str]:
        """Starts the command, ends it when it has saved so many tokens; returns its code and what it said.

        It saves twice a second, and a fast machine does all of the work in two. So it works a fifth of the time.
        """
        with subprocess.Popen([FARSTEP, *self.command("data")], stderr=subprocess.PIPE, text=True) as process:
            def is_saved() -> bool:
                process.send_signal(signal.SIGSTOP)
                time.sleep(0.08)
                process.send_signal(signal.SIGCONT)
                return self.tokens_saved() >= tokens or process.poll() is not None

            try:
                wait_until(is_saved, 240, "work is saved")
                self.assertIsNone(process.poll(), "it ended before it was interrupted")
                process.send_signal(signal_number)
                _, said = process.communicate(timeout=120)
            finally:
                process.kill()
        return process.returncode, said

    def test_interrupted_work_goes_on_with_the_same_bytes(self):
        """Killed when the vocabulary is trained, twice in mid-work, and interrupted by Ctrl-C."""
        whole = farstep(*self.command("whole"))
        self.assertEqual(whole.returncode, 0, whole.stderr)
        code, _ = self.interrupt(signal.SIGKILL, 0)
        self.assertEqual(code, -signal.SIGKILL)
        for _ in range(2):
            code, said = self.interrupt(signal.SIGKILL, self.tokens_saved() + 1)
            self.assertEqual(code, -signal.SIGKILL)
            self.assertIn("goes on with", said)
        before = self.tokens_saved()
        code, said = self.interrupt(signal.SIGINT, before + 1)
        self.assertEqual(code, 130, said)
        self.assertIn(f"The same command goes on from {self.folder}/data.partial", said)
        self.assertGreater(self.tokens_saved(), before)
        self.assertFalse((self.folder / "data").exists())
        done = farstep(*self.command("data"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("goes on with", done.stderr)
        self.assertEqual(contents(self.folder / "data"), contents(self.folder / "whole"))
        self.assertFalse((self.folder / "data.partial").exists())

    def test_other_inputs_begin_anew(self):
        """After a kill; and two processes do not write one folder."""
        self.interrupt(signal.SIGKILL, 1)
        with (self.folder / "text/b.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"text": "One line more."}) + "\n")
        with subprocess.Popen([FARSTEP, *self.command("data")], stderr=subprocess.PIPE, text=True) as process:
            try:
                wait_until(lambda: self.tokens_saved() == 0, 120, "it began anew")
                second = farstep(*self.command("data"))
                self.assertEqual(second.returncode, 2, second.stderr)
                self.assertIn("another process writes", second.stderr)
                _, said = process.communicate(timeout=100)
            finally:
                process.kill()
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("of other inputs: begins anew", said)
        made = farstep(*self.command("whole"))
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(contents(self.folder / "data"), contents(self.folder / "whole"))


class Parquet(unittest.TestCase):
    """Files that Python's library wrote, and the same texts as JSON lines."""

    GOLDEN = REPOSITORY / "tests/golden/parquet"

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        if not (FARSTEP.parent / "libfarstep_parquet.so").exists():
            refused = self.tokenize(self.GOLDEN / "zstd.parquet", "data")
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertIn("zstd.parquet: Parquet needs Arrow's library", refused.stderr)
            self.skipTest("this build is without Arrow")

    def tokenize(self, path: Path, output: str, *options: object) -> subprocess.CompletedProcess:
        """With the tokenizer of the tests' corpus."""
        return farstep("tokenize", path, "--output", self.folder / output, "--tokenizer", DATA, *options)

    def test_the_shards_are_those_of_the_same_json_lines(self):
        """Of several row groups, and with rows without text, which are named or left out."""
        lines = self.folder / "texts.jsonl"
        texts = json.loads((self.GOLDEN / "texts.json").read_text(encoding="utf-8"))
        lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
        refused = self.tokenize(self.GOLDEN / "zstd.parquet", "data")
        self.assertEqual(refused.returncode, 3)
        self.assertIn('zstd.parquet: row 4 (from 0): has no text in column "text"', refused.stderr)
        for path, output in ((lines, "lines"), (self.GOLDEN / "zstd.parquet", "rows")):
            made = self.tokenize(path, output, "--bad-text", "skip", "--validation-fraction", 0.2)
            self.assertEqual(made.returncode, 0, made.stderr)
        for shard in ("train-00000.tokens", "validation-00000.tokens"):
            self.assertEqual((self.folder / "rows" / shard).read_bytes(), (self.folder / "lines" / shard).read_bytes())

    def test_what_cannot_be_read_is_named(self):
        """A nested column, one that is not there, bytes that are no text, and a truncated file."""
        cut = self.folder / "cut.parquet"
        cut.write_bytes((self.GOLDEN / "zstd.parquet").read_bytes()[:-20])
        for path, field, message in (
                (self.GOLDEN / "kinds.parquet", "list", 'column "list" is nested'),
                (self.GOLDEN / "kinds.parquet", "text", "it has these of text: title, body"),
                (self.GOLDEN / "bytes.parquet", "text", "row 1 (from 0): byte 4: not UTF-8 text"),
                (cut, "text", f"{cut}: cannot be read as Parquet")):
            refused = self.tokenize(path, "data", "--text-field", field)
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertIn(message, refused.stderr)
            self.assertFalse((self.folder / "data").exists())


if __name__ == "__main__":
    unittest.main()
