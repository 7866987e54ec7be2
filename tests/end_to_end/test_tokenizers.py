"""Text to shards with tokenizers of others, and what `farstep inspect` says of them."""

import array
import gzip
import json
import random
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from cluster import farstep
from oracles import PYTHON, require_modules

SOURCE = Path(__file__).resolve().parents[2]

# Prints the ids of the text in argv[2] by the tokenizer.json argv[1]; names of special tokens are what argv[3] says.
IDS_BY_TOKENIZERS = """
import sys, tokenizers
tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
tokenizer.encode_special_tokens = sys.argv[3] == "text"
with open(sys.argv[2], encoding="utf-8", newline="") as file:
    print(tokenizer.encode(file.read(), add_special_tokens=False).ids)
"""


def shard_ids(folder: Path, split: str) -> list[int]:
    """The ids of a split with tokens of 16 bits, which is one shard."""
    ids = array.array("H")
    ids.frombytes((folder / f"{split}-00000.tokens").read_bytes()[48:])
    return ids.tolist()


class Tokenizers(unittest.TestCase):
    """A tokenizer.json of the recorded kinds."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.golden = json.loads(gzip.decompress((SOURCE / "tests/golden/tokenizers/reference.json.gz").read_bytes()))

    def write_tokenizer(self, name: str, changes: dict | None = None) -> Path:
        """Makes the file of a recorded kind, with other members."""
        kind = next(kind for kind in self.golden["kinds"] if kind["name"] == name)
        path = self.folder / "tokenizer.json"
        model = self.golden["models"][kind["model"]] | kind["changes"]
        path.write_text(json.dumps(kind["file"] | {"model": model} | (changes or {})), encoding="utf-8")
        return path

    def tokenize(self, text: Path, *options: object):
        """Into a folder without a validation split."""
        return farstep("tokenize", text, "--output", self.folder / "data", "--force", "--validation-fraction", 0, *options)

    def test_recorded_ids_are_in_the_shard(self):
        """Of all hard texts, a JSON line each; inspect decodes them."""
        cases = [text for text in self.golden["cases"] if text]
        lines = self.folder / "cases.jsonl"
        lines.write_text("".join(json.dumps({"body": text}) + "\n" for text in cases), encoding="utf-8")
        path = self.write_tokenizer("gpt2")
        refused = self.tokenize(lines, "--tokenizer", path, "--text-field", "body")
        self.assertEqual(refused.returncode, 3)
        self.assertIn(f"{path}: does not say which token ends a document", refused.stderr)
        made = self.tokenize(lines, "--tokenizer", path, "--text-field", "body", "--end-token", "<|end|>",
                             "--special-tokens", "tokens")
        self.assertEqual(made.returncode, 0, made.stderr)
        kind = next(kind for kind in self.golden["kinds"] if kind["name"] == "gpt2")
        end = kind["file"]["added_tokens"][0]["id"]
        expected = []
        for number, text in enumerate(self.golden["cases"]):
            if text:
                expected += kind["ids"][str(number)] + [end]
        self.assertEqual(shard_ids(self.folder / "data", "train"), expected)

        shown = farstep("inspect", self.folder / "data", "--windows", 1, "--window-tokens", len(expected))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        facts = json.loads((self.folder / "data/dataset.json").read_text())
        self.assertIn(f"of {len(cases)} documents", shown.stdout)
        self.assertEqual(facts["eos"], end)
        self.assertIn(json.dumps("".join(cases), ensure_ascii=False)[1:40], shown.stdout)

    def test_ids_are_those_of_an_installed_library(self):
        """On 1 MB of novels and hard texts, whole and in pieces by two threads."""
        require_modules("tokenizers")
        random.seed(2)
        novels = [path.read_text(encoding="utf-8") for path in sorted((SOURCE / ".deps/corpus/austen").glob("*.txt"))]
        words = "\n".join(novels)[:1_000_000].split(" ")
        for case in self.golden["cases"] * 40:
            words[random.randrange(len(words))] = case
        text = self.folder / "text.txt"
        text.write_bytes(" ".join(words).replace("\0", "").encode())
        for name in ("gpt2", "llama3", "smollm2", "deepseek", "qwen2", "gpt4o"):
            path = self.write_tokenizer(name)
            for names in ("text", "tokens"):
                made = self.tokenize(text, "--tokenizer", path, "--end-token", "<|end|>", "--threads", 2,
                                     "--special-tokens", names)
                self.assertEqual(made.returncode, 0, made.stderr)
                self.assertEqual("names of special tokens" in made.stderr, names == "text", made.stderr)
                encoded = subprocess.run([PYTHON, "-c", IDS_BY_TOKENIZERS, path, text, names], capture_output=True,
                                         check=False, timeout=120)
                self.assertEqual(encoded.returncode, 0, encoded.stderr)
                ids = shard_ids(self.folder / "data", "train")
                self.assertEqual(ids[:-1], json.loads(encoded.stdout), (name, names))
                # The text cannot end its document.
                self.assertEqual(ids.count(ids[-1]) == 1, names == "text", name)

    def unigram(self) -> dict:
        """A Unigram model of the pieces of the characters' model. Sums of its scores are exact, so ties are ties."""
        random.seed(3)
        pieces = self.golden["models"]["characters"]["vocab"]
        by_id = sorted(pieces, key=pieces.get)
        return {"type": "Unigram", "unk_id": pieces["<unk>"], "byte_fallback": False,
                "vocab": [[piece, -random.randrange(192, 576) / 64] for piece in by_id]}

    def test_a_long_document_is_cut_only_where_the_normalizer_allows_it(self):
        """Its ids are those of the whole document, of every kind of model."""
        require_modules("tokenizers")
        random.seed(4)
        parts = ["the", "of", "d", "caf\u00e9", "cafe\u0301", "\u0958", "\ufb01", "-", ".", "don't", "12"]
        gaps = [" ", " ", "  ", "   ", "\n", "\n\n", " \n", ""]
        text = self.folder / "text.txt"
        text.write_bytes("".join(random.choice(parts) + random.choice(gaps) for _ in range(24_000)).encode())
        normalizers = [{"type": kind} for kind in ("NFC", "NFD", "NFKC", "NFKD")]
        normalizers.append({"type": "Strip", "strip_left": True, "strip_right": True})
        normalizers += [{"type": "Replace", "pattern": pattern, "content": content} for pattern, content in (
            ({"Regex": " {2,}"}, " "), ({"Regex": "e\\s+t"}, "-"), ({"String": "d"}, "-"), ({"String": "\n"}, ""))]
        space = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
        for name, changes in (("llama3", {}), ("llama2", {}), ("llama2", {"model": self.unigram()})):
            for step in normalizers:
                steps = [step] if name == "llama3" else [step, space]
                whole = {"normalizer": {"type": "Sequence", "normalizers": steps}}
                path = self.write_tokenizer(name, changes | whole)
                end = "<|end|>" if name == "llama3" else "</s>"
                made = self.tokenize(text, "--tokenizer", path, "--end-token", end, "--threads", 2)
                self.assertEqual(made.returncode, 0, made.stderr)
                encoded = subprocess.run([PYTHON, "-c", IDS_BY_TOKENIZERS, path, text, "text"], capture_output=True,
                                         check=False, timeout=120)
                self.assertEqual(encoded.returncode, 0, encoded.stderr)
                self.assertEqual(shard_ids(self.folder / "data", "train")[:-1], json.loads(encoded.stdout),
                                 (name, changes, step))


if __name__ == "__main__":
    unittest.main()
