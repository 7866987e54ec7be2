"""What a user sees of a trained model: its text, its loss, its answers."""

import gzip
import json
import math
import subprocess
import unittest

from cluster import DATA, FARSTEP, Cluster, ClusterTest, farstep

CONTEXT = "She was"
ENDINGS = ["very much pleased with the whole of it.", "zq ## 17", "the the of and"]


class Quality(ClusterTest):
    """One short run, and the commands that use its model."""

    def setUp(self):
        super().setUp()
        cluster = Cluster(self.folder, 1)
        self.assert_success(cluster.launch())
        self.site = cluster.output / "node1"

    def text_of(self, *options: object) -> str:
        """What generate prints."""
        result = farstep("generate", self.site, "--data", DATA, "--tokens", 24, *options)
        self.assert_success(result)
        return result.stdout

    def score(self, *options: object) -> dict:
        """What evaluate finds."""
        result = farstep("evaluate", self.site, "--data", DATA, "--json", *options)
        self.assert_success(result)
        return json.loads(result.stdout)

    def test_a_prompt_comes_from_argument_file_and_input(self):
        """One text, whichever way its beginning comes."""
        text = self.text_of("--prompt", CONTEXT)
        self.assertTrue(text.startswith(CONTEXT))
        self.assertGreater(len(text), len(CONTEXT) + 8)
        file = self.folder / "prompt.txt"
        file.write_text(CONTEXT, encoding="utf-8")
        self.assertEqual(self.text_of("--prompt-file", file), text)
        piped = subprocess.run([str(FARSTEP), "generate", str(self.site), "--data", str(DATA),
                                "--tokens", "24"], input=CONTEXT, capture_output=True, text=True,
                               timeout=120, check=True)
        self.assertEqual(piped.stdout, text)
        self.assertIn("tokens/s", piped.stderr)
        marked = b"\xef\xbb\xbf" + CONTEXT.encode()
        file.write_bytes(marked)
        self.assertEqual(self.text_of("--prompt-file", file), text)
        piped = subprocess.run([str(FARSTEP), "generate", str(self.site), "--data", str(DATA), "--tokens", "24"],
                               input=marked, capture_output=True, timeout=120, check=True)
        self.assertEqual(piped.stdout.decode(), text)
        with self.subTest("the checkpoint has the tokenizer"):
            own = farstep("generate", self.site, "--tokens", 24, "--prompt", CONTEXT)
            self.assertEqual(own.stdout, text)
        with self.subTest("a small context is read anew"):
            self.assertTrue(self.text_of("--prompt", CONTEXT, "--context", 8).startswith(CONTEXT))
        with self.subTest("no prompt"):
            # One text in eight or so ends at once, as the model has had few steps.
            texts = [self.text_of("--prompt", "", "--seed", seed) for seed in range(5)]
            self.assertGreater(max(len(text) for text in texts), 8)

    def test_a_text_ends_where_it_is_told(self):
        """A stop string is not part of the text."""
        text = self.text_of("--prompt", CONTEXT, "--temperature", 0)
        stop = text[len(CONTEXT) + 5:len(CONTEXT) + 7]
        cut = self.text_of("--prompt", CONTEXT, "--temperature", 0, "--stop", stop)
        place = text.index(stop, len(CONTEXT))
        self.assertEqual(cut, text[:place] + "\n")

    def test_types_and_top_p(self):
        """bf16 computes the same model, and the likeliest token alone is what temperature 0 takes."""
        likeliest = self.text_of("--prompt", CONTEXT, "--temperature", 0)
        self.assertEqual(self.text_of("--prompt", CONTEXT, "--top-p", 1e-6), likeliest)
        fp32, bf16 = (self.score("--windows", 64, "--compute", kind)["loss"] for kind in ("fp32", "bf16"))
        self.assertAlmostEqual(fp32, bf16, delta=0.02)
        self.assertTrue(self.text_of("--prompt", CONTEXT, "--compute", "bf16").startswith(CONTEXT))

    def test_a_text_has_a_loss_and_bits_per_byte(self):
        """The bits of all tokens, divided by the bytes of the text."""
        file = self.folder / "text.txt"
        text = "It is a truth — universally — acknowledged. " * 20
        file.write_text(text, encoding="utf-8")
        found = self.score("--text", file)
        self.assertEqual(found["sequence_length"], 32)  # as trained
        for name, content in (("marked.txt", b"\xef\xbb\xbf" + text.encode()), ("text.GZ", gzip.compress(text.encode()))):
            (self.folder / name).write_bytes(content)
            self.assertEqual(self.score("--text", self.folder / name), found)
        bits = found["loss"] * found["tokens"] / math.log(2)
        self.assertAlmostEqual(found["bits_per_byte"], bits / len(text.encode()), places=9)
        with self.subTest("the checkpoint has the tokenizer"):
            own = farstep("evaluate", self.site, "--json", "--text", file)
            self.assert_success(own)
            self.assertEqual(json.loads(own.stdout), found)
        shards = self.score("--windows", 64)
        self.assertEqual(shards["sequence_length"], 32)
        self.assertGreater(shards["bits_per_byte"], 0.5)
        self.assertLess(shards["bits_per_byte"], 8)

    def test_questions_are_answered_by_likelihood(self):
        """The answer is the ending whose whole text has the least loss."""
        losses = []
        for ending in ENDINGS:
            file = self.folder / "text.txt"
            file.write_text(f"{CONTEXT} {ending}", encoding="utf-8")
            found = self.score("--text", file, "--sequence-length", 128)
            losses.append(found["loss"] * found["tokens"])
        best = losses.index(min(losses))
        questions = self.folder / "questions.jsonl"
        for label in range(len(ENDINGS)):
            with self.subTest(label=label):
                line = json.dumps({"ctx": CONTEXT, "endings": ENDINGS, "label": label})
                questions.write_text(f"{line}\n{line}\n", encoding="utf-8")
                found = self.score("--questions", questions, "--sequence-length", 128)
                self.assertEqual(found["questions"], 2)
                self.assertEqual(found["accuracy"], 1.0 if label == best else 0.0)
                own = farstep("evaluate", self.site, "--json", "--questions", questions,
                              "--sequence-length", 128)
                self.assert_success(own)
                self.assertEqual(json.loads(own.stdout), found)

    def test_mistakes_are_named(self):
        """Each with what to do."""
        empty = self.folder / "empty.txt"
        empty.write_text("", encoding="utf-8")
        broken = self.folder / "broken.jsonl"
        broken.write_text('{"ctx": "a"}\n', encoding="utf-8")
        picture = self.folder / "picture.txt"
        picture.write_bytes(b"\x89PNG\r\n")
        cases = ((("generate", "--prompt", "a", "--prompt-file", empty), 2, "exclude each other"),
                 (("generate", "--prompt", "a", "--stop", ""), 2, "--stop must not be empty"),
                 (("generate", "--prompt", "a", "--compute", "fp8"), 2, "use fp32 or bf16"),
                 (("generate", "--prompt", "a", "--top-p", 0), 2, "--top-p: is 0"),
                 (("generate", "--prompt-file", self.folder / "none"), 3, "none"),
                 (("evaluate", "--text", empty), 3, "empty.txt: is empty"),
                 (("evaluate", "--questions", broken), 3, "line 1: endings: is missing"),
                 (("evaluate", "--text", broken), 3, "is a file of JSON lines"),
                 (("evaluate", "--text", picture), 3, "picture.txt: a picture"),
                 (("generate", "--prompt-file", picture), 3, "picture.txt: a picture"),
                 (("evaluate", "--questions", picture), 3, "a picture"),
                 (("evaluate", "--text", empty, "--questions", broken), 2, "exclude each other"))
        for (command, *options), code, message in cases:
            with self.subTest(message=message):
                result = farstep(command, self.site, "--data", DATA, *options)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(message, result.stderr)
        with self.subTest("no data"):
            missing = farstep("evaluate", self.site)
            self.assertEqual(missing.returncode, 2)
            self.assertIn("--data is missing", missing.stderr)
        longer = farstep("evaluate", self.site, "--data", DATA, "--sequence-length", 64, "--windows", 8)
        self.assert_success(longer)
        self.assertIn("was trained with 32 tokens at most", longer.stderr)


if __name__ == "__main__":
    unittest.main()
