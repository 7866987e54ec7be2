"""What a model's folder says of its use: how a text begins and ends, and which matrix is the head.

The oracle is `transformers`, by model_oracle.py.
"""

import array
import json
import random
import shutil
import struct
import subprocess
import unittest
from pathlib import Path

from cluster import FARSTEP, REPOSITORY, ClusterTest, farstep
from oracles import PYTHON, require_modules

TEXT = "Once upon a time the quick brown fox jumps over a lazy dog, and tick tock goes the clock."
PROMPT = "Once upon a"
TOKENS = 12
BEGIN, END = 0, 1  # of the oracle's models
BEGIN_NAME = "<|begin_of_text|>"
NAMES = {"bos_token": BEGIN_NAME, "eos_token": "<|end_of_text|>"}

TEMPLATE = {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": BEGIN_NAME, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {BEGIN_NAME: {"id": BEGIN_NAME, "ids": [BEGIN], "tokens": [BEGIN_NAME]}}}
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}

# What the folder's files say, and whether bos goes before a text then: post-processor, members of
# tokenizer_config.json.
OPENINGS = {
    "template": (TEMPLATE, {"tokenizer_class": "PreTrainedTokenizerFast"}, True),
    "steps": ({"type": "Sequence", "processors": [BYTES, TEMPLATE]}, {"tokenizer_class": "PreTrainedTokenizerFast"},
              True),
    # config.json names bos in all of them.
    "none": (None, {"tokenizer_class": "PreTrainedTokenizerFast"}, False),
    "bytes": (BYTES, {"tokenizer_class": "PreTrainedTokenizerFast"}, False),
    "class": (None, {"tokenizer_class": "LlamaTokenizerFast"}, True),
    "class says no": (TEMPLATE, {"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": False}, False),
    "class says yes": (None, {"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": True}, True),
}


def shard_ids(dataset: Path) -> list[int]:
    """The training tokens of a small dataset."""
    ids = array.array("H")
    ids.frombytes((dataset / "train-00000.tokens").read_bytes()[48:])
    return ids.tolist()


def whole_characters(text: str) -> str:
    """Those of the text that are neither ASCII nor U+FFFD."""
    return "".join(character for character in text if ord(character) > 0x7f and character != "\ufffd")


def read_safetensors(path: Path) -> tuple[dict, bytes]:
    """Header and data."""
    content = path.read_bytes()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:end]), content[end:]


class ModelFolders(ClusterTest):
    """Folders that `transformers` has saved, with other files beside them."""

    def setUp(self):
        super().setUp()
        require_modules("torch", "transformers", "tokenizers", "sentencepiece", "google.protobuf")
        self.model = self.folder / "model"

    def ask(self, questions: list[dict], make: list[dict] = ()) -> list[dict]:
        """The oracle's answers."""
        given = {"make": make, "ask": [question | {"folder": str(question["folder"])} for question in questions]}
        told = subprocess.run([PYTHON, Path(__file__).with_name("model_oracle.py")], input=json.dumps(given),
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(told.returncode, 0, told.stderr)
        return json.loads(told.stdout)

    def make_model(self, config: dict | None = None, headless: bool = False):
        """`model`, of the oracle."""
        self.ask([], [{"folder": str(self.model), "config": config or {}, "headless": headless}])

    def variant(self, name: str, post_processor=None, config: dict | None = None) -> Path:
        """A copy of `model` with other files of its tokenizer."""
        folder = self.folder / name.replace(" ", "_")
        shutil.copytree(self.model, folder)
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        tokenizer["post_processor"] = post_processor
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        if config is not None:
            (folder / "tokenizer_config.json").write_text(json.dumps(NAMES | config))
        return folder

    def loss(self, folder: Path, *options: object) -> float:
        """That of TEXT by `farstep evaluate`."""
        (self.folder / "text.txt").write_text(TEXT)
        told = farstep("evaluate", folder, "--text", self.folder / "text.txt", "--json", "--threads", 1, *options)
        self.assert_success(told)
        return json.loads(told.stdout)["loss"]

    def continued(self, folder: Path, prompt: str = PROMPT) -> str:
        """What `farstep generate` writes behind a prompt."""
        told = farstep("generate", folder, "--prompt", prompt, "--temperature", 0, "--tokens", TOKENS,
                       "--threads", 1)
        self.assert_success(told)
        self.assertTrue(told.stdout.startswith(prompt))
        return told.stdout[len(prompt):-1]

    def document(self, folder: Path) -> tuple[Path, list[int]]:
        """A dataset of TEXT alone, by the folder's tokenizer, and its ids."""
        (self.folder / "text.txt").write_text(TEXT)
        data = self.folder / f"{folder.name}-data"
        self.assert_success(farstep("tokenize", self.folder / "text.txt", "--output", data, "--tokenizer", folder,
                                    "--validation-fraction", 0))
        return data, shard_ids(data)

    def right_answers(self, folder: Path, questions: list[dict], labels: list[int]) -> int:
        """How many of the oracle's answers `farstep evaluate` has."""
        file = self.folder / "questions.jsonl"
        file.write_text("".join(json.dumps(question | {"label": label}) + "\n"
                                for question, label in zip(questions, labels, strict=True)))
        told = farstep("evaluate", folder, "--questions", file, "--json", "--threads", 1)
        self.assert_success(told)
        return round(json.loads(told.stdout)["accuracy"] * len(questions))

    def assert_full_disk_is_told(self, folder: Path):
        """Of what a command prints at once, and of what it shows as it comes."""
        (self.folder / "text.txt").write_text(TEXT)
        text = ("evaluate", folder, "--text", self.folder / "text.txt")
        for words in (("generate", folder, "--prompt", PROMPT), ("generate", folder, "--prompt", ""), text,
                      (*text, "--json"), ("import", folder)):
            with open("/dev/full", "w", encoding="utf-8") as full:
                told = subprocess.run([FARSTEP, *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=60, check=False)
            self.assertEqual(told.returncode, 3, words)
            self.assertIn("cannot write to the standard output: No space left", told.stderr)

    def test_a_text_begins_as_the_tokenizer_s_files_say(self):
        """In evaluate, questions, generate, tokenize and import; none is begun twice."""
        self.make_model()
        chance = random.Random(3)
        words = TEXT.replace(",", "").replace(".", "").split()
        choices = [{"ctx": " ".join(chance.choices(words, k=2)), "endings": [
            " ".join(chance.choices(words, k=3)) for _ in range(4)]} for _ in range(24)]
        folders = {name: self.variant(name, post_processor, config)
                   for name, (post_processor, config, _) in OPENINGS.items()}
        asked = {"text": TEXT, "prompt": PROMPT, "tokens": TOKENS, "choices": choices, "start": END}
        answers = self.ask([asked | {"folder": folder} for folder in folders.values()])
        # The beginning decides all of them.
        by_opening = {OPENINGS[name][2]: answer for name, answer in zip(OPENINGS, answers, strict=True)}
        for member in ("ids", "loss", "continued", "choices"):
            self.assertNotEqual(by_opening[False][member], by_opening[True][member], member)
        for (name, folder), expected in zip(folders.items(), answers, strict=True):
            with self.subTest(name):
                opened = OPENINGS[name][2]
                self.assertEqual(expected["ids"][0] == BEGIN, opened)
                self.assertAlmostEqual(self.loss(folder), expected["loss"], places=5)
                self.assertEqual(self.continued(folder), expected["continued"])
                self.assertEqual(self.right_answers(folder, choices, expected["choices"]), len(choices))
                data, ids = self.document(folder)
                self.assertEqual(ids, [*expected["ids"], END])
                # The dataset's copy begins texts as its documents begin.
                self.assertAlmostEqual(self.loss(folder, "--data", data), expected["loss"], places=5)
                shown = farstep("import", folder)
                self.assert_success(shown)
                self.assertIn(f"begin {BEGIN if opened else 'none'}, end {END}\n", shown.stdout)
        self.assertEqual(self.continued(folders["template"], BEGIN_NAME + PROMPT), by_opening[True]["continued"])
        chat = self.folder / "chat.jsonl"
        chat.write_text(json.dumps({"text": BEGIN_NAME + TEXT}) + "\n" + json.dumps({"text": TEXT}) + "\n")
        self.assert_success(farstep("tokenize", chat, "--output", self.folder / "chats", "--tokenizer",
                                    folders["template"], "--special-tokens", "tokens", "--validation-fraction", 0))
        self.assertEqual(shard_ids(self.folder / "chats"), 2 * [*by_opening[True]["ids"], END])

    def test_each_of_several_tokens_ends_a_text(self):
        """Of config.json, and of generation_config.json, which counts first; import shows them."""
        self.make_model()
        plain = self.variant("plain", TEMPLATE, {"tokenizer_class": "PreTrainedTokenizerFast"})
        self.assert_full_disk_is_told(plain)
        asked = {"prompt": PROMPT, "tokens": TOKENS, "start": END}
        made = self.ask([asked | {"folder": plain}])[0]["new_tokens"]
        self.assertEqual(len(made), TOKENS)
        firsts = [place for place, token in enumerate(made) if token not in made[:place]]
        late, soon = made[firsts[4]], made[firsts[2]]
        kinds = {"list": ([END, late], None), "one": (late, None), "generation": (END, {"eos_token_id": [END, soon]}),
                 "generation one": ([END, late], {"eos_token_id": soon}), "no id": ([END, late], {"do_sample": False})}
        folders = {}
        for name, (ends, generation) in kinds.items():
            folder = folders[name] = self.folder / name.replace(" ", "_")
            shutil.copytree(plain, folder)
            config = json.loads((folder / "config.json").read_text()) | {"eos_token_id": ends}
            (folder / "config.json").write_text(json.dumps(config))
            (folder / "generation_config.json").unlink()
            if generation:
                (folder / "generation_config.json").write_text(json.dumps(generation))
        # Without an id there `transformers` ends no text at all; ours ends by config.json.
        names = [name for name in kinds if name != "no id"]
        answers = dict(zip(names, self.ask([asked | {"folder": folders[name]} for name in names]), strict=True))
        for name, expected in (answers | {"no id": answers["list"]}).items():
            with self.subTest(name):
                place = firsts[2 if name.startswith("generation") else 4]
                self.assertEqual(len(expected["new_tokens"]), place + 1)
                self.assertEqual(self.continued(folders[name]), expected["continued"])
        shown = farstep("import", folders["generation"])
        self.assertIn(f"begin {BEGIN}, end {END} or {soon}\n", shown.stdout)
        (folders["one"] / "generation_config.json").write_text('{"eos_token_id": [999]}')
        refused = farstep("generate", folders["one"], "--prompt", PROMPT)
        self.assertEqual(refused.returncode, 3)
        self.assertIn(f"{folders['one']}/generation_config.json: eos_token_id: is 999", refused.stderr)

    def test_a_sentencepiece_model_begins_as_its_class_says(self):
        """Also what is exported of it, and a dataset that was made with it."""
        self.make_model({"vocab_size": 600, "bos_token_id": 1, "eos_token_id": 2})
        (self.model / "tokenizer.json").unlink()
        golden = REPOSITORY / "tests/golden/tokenizers"
        kinds = {"class": {"tokenizer_class": "LlamaTokenizer", "legacy": False}, "config.json alone": None,
                 "says yes": {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "legacy": False},
                 "says no": {"tokenizer_class": "LlamaTokenizer", "add_bos_token": False, "legacy": False}}
        folders = {}
        for name, config in kinds.items():
            folder = folders[name] = self.folder / name.replace(" ", "_")
            shutil.copytree(self.model, folder)
            shutil.copy(golden / "prefix.model", folder / "tokenizer.model")
            if config:
                (folder / "tokenizer_config.json").write_text(json.dumps(config))
        exports = {}
        for name in ("class", "says yes", "says no"):
            folder = exports[name] = self.folder / f"exported_{name.replace(' ', '_')}"
            self.assert_success(farstep("export", folders[name], "--output", folder))
        asked = {"text": TEXT, "prompt": PROMPT, "tokens": TOKENS, "start": 2}
        everything = [*folders.items(), *exports.items()]
        answers = self.ask([asked | {"folder": folder} for _, folder in everything])
        for (name, folder), expected in zip(everything, answers, strict=True):
            with self.subTest(name, folder=folder.name):
                self.assertEqual(expected["ids"][0] == 1, name != "says no")
                self.assertAlmostEqual(self.loss(folder), expected["loss"], places=5)
                # Bytes that are no character `tokenizers` shows in another way, with the ASCII beside them.
                self.assertEqual(whole_characters(self.continued(folder)), whole_characters(expected["continued"]))
                data, ids = self.document(folder)
                self.assertEqual(ids, [*expected["ids"], 2])
                self.assertAlmostEqual(self.loss(folder, "--data", data), expected["loss"], places=5)
        # A program that reads the tokenizer.json alone begins so too.
        told = subprocess.run([PYTHON, "-c", "import json, sys, tokenizers\n"
                               "load = tokenizers.Tokenizer.from_file\n"
                               f"print(json.dumps([load(file).encode({TEXT!r}).ids for file in sys.argv[1:]]))",
                               *(folder / "tokenizer.json" for folder in exports.values())],
                              capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(json.loads(told.stdout), [answer["ids"] for answer in answers[len(folders):]])

    def test_a_head_that_a_tied_model_s_file_has_counts(self):
        """If it differs from the embedding: as if config.json did not say tie_word_embeddings."""
        self.make_model()
        apart = self.variant("apart", TEMPLATE, {"tokenizer_class": "PreTrainedTokenizerFast"})
        tied = self.folder / "tied"
        shutil.copytree(apart, tied)
        config = json.loads((tied / "config.json").read_text()) | {"tie_word_embeddings": True}
        (tied / "config.json").write_text(json.dumps(config))
        asked = {"text": TEXT, "prompt": PROMPT, "tokens": TOKENS, "start": END}
        expected, = self.ask([asked | {"folder": apart}])
        told = farstep("generate", tied, "--prompt", PROMPT, "--temperature", 0, "--tokens", TOKENS)
        self.assertEqual(told.stdout, PROMPT + expected["continued"] + "\n")
        self.assertIn(f"{tied}/config.json: says tie_word_embeddings, but the weights have a head", told.stderr)
        self.assertAlmostEqual(self.loss(tied), expected["loss"], places=5)
        for command in ("import", "export"):
            copy = self.folder / command
            made = farstep(command, tied, "--output", copy)
            self.assert_success(made)
            self.assertIn("says tie_word_embeddings", made.stderr)
            self.assertIs(json.loads((copy / "config.json").read_text())["tie_word_embeddings"], False)
            again = farstep("import", copy)
            self.assertNotIn("tie_word_embeddings", again.stderr)
            self.assertAlmostEqual(self.loss(copy), expected["loss"], places=5)

    def test_names_without_the_prefix_are_those_of_a_model_without_its_head(self):
        """As LlamaModel saves them; the one matrix of a tied model may have either name, or both."""
        self.make_model({"tie_word_embeddings": True}, headless=True)
        header, data = read_safetensors(self.model / "model.safetensors")
        self.assertIn("embed_tokens.weight", header)
        self.assertNotIn("lm_head.weight", header)
        folder = self.variant("headless", TEMPLATE, {"tokenizer_class": "PreTrainedTokenizerFast"})
        expected, = self.ask([{"folder": folder, "text": TEXT, "prompt": PROMPT, "tokens": TOKENS, "start": END}])
        self.assertEqual(self.continued(folder), expected["continued"])
        embedding = header.pop("embed_tokens.weight")
        both = {"embed_tokens.weight": embedding, "lm_head.weight": embedding}
        for names in (both, {"lm_head.weight": embedding}):
            tensors, rest = header | names, b""
            for name, entry in tensors.items():  # each with bytes of its own
                if name == "__metadata__":
                    continue
                begin, end = entry["data_offsets"]
                tensors[name] = entry | {"data_offsets": [len(rest), len(rest) + end - begin]}
                rest += data[begin:end]
            text = json.dumps(tensors).encode()
            (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + rest)
            self.assertAlmostEqual(self.loss(folder), expected["loss"], places=5)
            self.assertNotIn("tie_word", farstep("import", folder).stderr)
        config = json.loads((folder / "config.json").read_text()) | {"tie_word_embeddings": False}
        (folder / "config.json").write_text(json.dumps(config))
        refused = farstep("import", folder)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("model.embed_tokens.weight", refused.stderr)


if __name__ == "__main__":
    unittest.main()
