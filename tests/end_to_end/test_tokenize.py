"""`farstep tokenize` that is interrupted, and what the same command makes of it; which files it reads, and how."""

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
from oracles import PYTHON, require_modules


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

        It saves twice a second, and a fast machine does all of the work in two. So it works a fifth of the time,
        and stands still whenever it is looked at.
        """
        with subprocess.Popen([FARSTEP, *self.command("data")], stderr=subprocess.PIPE, text=True) as process:
            def is_saved() -> bool:
                process.send_signal(signal.SIGCONT)
                time.sleep(0.02)
                process.send_signal(signal.SIGSTOP)
                time.sleep(0.06)
                return self.tokens_saved() >= tokens or process.poll() is not None

            try:
                wait_until(is_saved, 240, "work is saved")
                self.assertIsNone(process.poll(), "it ended before it was interrupted")
                process.send_signal(signal_number)
                process.send_signal(signal.SIGCONT)
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
            made = self.tokenize(path, output, "--bad-text", "skip", "--most-left-out", 0.5, "--validation-fraction", 0.2)
            self.assertEqual(made.returncode, 0, made.stderr)
        for shard in ("train-00000.tokens", "validation-00000.tokens"):
            self.assertEqual((self.folder / "rows" / shard).read_bytes(), (self.folder / "lines" / shard).read_bytes())

    def test_a_page_out_of_proportion_is_read_after_what_the_message_says(self):
        """300 MB of text in one page of a file of some KB; then as the message has it written."""
        require_modules("pyarrow")
        path = self.folder / "page.parquet"
        write = ("import sys, pyarrow, pyarrow.parquet\n"
                 "table = pyarrow.table({'text': ['tick tock goes the clock ' * 800] * 15000})\n"
                 f"pyarrow.parquet.write_table(table, {str(path)!r}, use_dictionary=False, compression='zstd', "
                 "**eval(sys.argv[1]))")
        subprocess.run([PYTHON, "-c", write, "dict(data_page_size=1 << 30, write_batch_size=1 << 20)"], check=True)
        refused = self.tokenize(path, "data")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("256 MiB", refused.stderr)
        remedy = refused.stderr.split("write_table(..., ")[1].split(")")[0]
        subprocess.run([PYTHON, "-c", write, f"dict({remedy})"], check=True)
        made = self.tokenize(path, "data")
        self.assertEqual(made.returncode, 0, made.stderr)

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


class Files(unittest.TestCase):
    """Files of all kinds and names, with Python's own readers as the oracle."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def tokenize(self, path: Path, *options: object) -> subprocess.CompletedProcess:
        """With the tokenizer of the tests' corpus."""
        return farstep("tokenize", path, "--output", self.folder / "data", "--force", "--tokenizer", DATA, *options)

    def tokens(self, path: Path, *options: object) -> tuple[bytes, bytes]:
        """Both splits of the dataset that is made of it."""
        made = self.tokenize(path, *options)
        self.assertEqual(made.returncode, 0, made.stderr)
        return tuple((self.folder / "data" / f"{split}-00000.tokens").read_bytes() for split in ("train", "validation"))

    def test_lines_are_read_as_python_reads_them(self):
        """What json.loads takes becomes its text, and what it refuses is left out; halves of pairs become U+FFFD."""
        values = ["NaN", "-Infinity", "1e999", "-0.0E-0", "9" * 400, "01", "1.", ".5", "+1", "nul", "[1,]", "[[1], {}]",
                  "{\"a\": 1,}", "\"\\ud83d\"", "\"\\q\"", "\"\t\"", "\"\\u12\"", "'x'", "\"\\u00e9\"", "true", "\"", "{"]
        lines = [f'{{"text": "tick tock {i}", "other": {value}}}' for i, value in enumerate(values)]
        lines += [f'{{"text": {value}}}' for value in values]
        lines += [f'{{"other": {value}, "te\\u0078t": "tick \\ud83d\\ude00 tock \\udc00"}}' for value in values]
        lines += ['{"text": "tick", "text": "tock"}', "[1]", "3", "nothing", '{"text": "tick"} {}', '{"text": "x"'] * 2
        path = self.folder / "a.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8")
        texts = []
        for line in lines:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict) and isinstance(found.get("text"), str):
                texts.append(found["text"].encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        self.assertGreater(len(texts), 20)
        refused = self.tokenize(path, "--bad-text", "skip")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        left_out = len(lines) - len(texts)
        self.assertIn(f"{left_out} of {len(lines)} documents", refused.stderr)
        options = ("--validation-fraction", 0.5)
        taken = self.tokenize(path, "--bad-text", "skip", "--most-left-out", 1, "--validation-fraction", 0)
        self.assertEqual(taken.returncode, 0, taken.stderr)
        train = (self.folder / "data/train-00000.tokens").read_bytes()
        path.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts), encoding="utf-8")
        self.assertEqual(self.tokenize(path, "--validation-fraction", 0).returncode, 0)
        self.assertEqual((self.folder / "data/train-00000.tokens").read_bytes(), train)
        # A byte that is not UTF-8 counts where it is asked for.
        good = self.tokens(path, *options)
        with path.open("rb+") as file:
            content = file.read().replace(b'{"text"', b'{"\xff": "\xfe", "text"')
            file.seek(0)
            file.write(content)
        self.assertEqual(self.tokens(path, *options), good)

    def test_a_name_and_the_first_bytes_say_the_kind(self):
        """One set of tokens, whatever the file is called, and however it is compressed; a mark before it is none."""
        lines = "".join(json.dumps({"text": f"tick {i}", "url": "x"}) + "\n" for i in range(20)).encode()
        path = self.folder / "a.jsonl"
        path.write_bytes(lines)
        expected = self.tokens(path)
        for name, content in (("a.json", lines), ("a.NDJSON", lines), ("a.jsonlines", lines), ("part-00000", lines),
                              ("a.json.gz", gzip.compress(lines)), ("b.JSON.GZ", gzip.compress(lines)),
                              ("a.jsonl", b"\xef\xbb\xbf" + lines), ("a.jsonl", b"\xef\xbb\xbf\n" + lines),
                              ("c.jsonl", gzip.compress(b"\xef\xbb\xbf" + lines))):
            with self.subTest(name):
                path = self.folder / name
                path.write_bytes(content)
                self.assertEqual(self.tokens(path), expected)
        text = b"Tick tock goes the clock.\n" * 50
        path = self.folder / "a.txt"
        path.write_bytes(text)
        expected = self.tokens(path)
        path.write_bytes(b"\xef\xbb\xbf" + text)
        self.assertEqual(self.tokens(path), expected)
        self.assertEqual(self.tokens(path.rename(path.with_suffix(".TXT"))), expected)

    def test_what_is_of_no_known_kind_is_refused(self):
        """By name, or by what it holds; and a cloned dataset is read without what describes it."""
        text = self.folder / "text"
        text.mkdir()
        (text / "a.csv").write_text("text,url\n")
        (text / "b.json").write_text(json.dumps([{"text": "x"}]))
        (text / "c.txt").write_bytes(b"PK\x03\x04")
        (text / "d.parquet").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
        refused = self.tokenize(text)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        for part in ('a.csv: ".csv" is no kind', "b.json: one JSON list", "c.txt: a zip archive", "git lfs pull",
                     "Kinds that are read: text (.txt", "--unknown-files leave_out"):
            self.assertIn(part, refused.stderr)
        lines = "".join(json.dumps({"text": f"tick {i}"}) + "\n" for i in range(40))
        (text / "e.jsonl").write_text(lines)
        expected = self.tokens(text / "e.jsonl")
        self.assertEqual(self.tokens(text, "--unknown-files", "leave_out"), expected)
        clone = self.folder / "clone"
        (clone / "data").mkdir(parents=True)
        (clone / "data/train.jsonl").write_text(lines)
        (clone / "README.md").write_text("# Ticks\n")
        (clone / "dataset_infos.json").write_text(json.dumps({"default": {}}, indent=1))
        self.assertEqual(self.tokens(clone), expected)
        made = self.tokenize(clone)
        self.assertIn("README.md: says what the folder has", made.stderr)


if __name__ == "__main__":
    unittest.main()
