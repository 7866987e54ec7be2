"""The pages of scripts/experiments: they follow from recorded rows, and so do their findings."""

import argparse
import copy
import importlib
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from stand_in import SOURCE, StandIns

sys.path.insert(0, str(SOURCE / "scripts/experiments"))
import experiment  # noqa: E402  pylint: disable=wrong-import-position

RESULTS = SOURCE / "docs/results"
GENERATORS = sorted(path.stem for path in (SOURCE / "scripts/experiments").glob("*.py")
                    if "    publish(" in path.read_text(encoding="utf-8"))
CHANGES = 60  # random ones of each record


def module(name: str):
    """The generator of that page."""
    return importlib.import_module(name)


def recorded(name: str) -> dict:
    """Its rows, which the caller may change."""
    return json.loads((RESULTS / "rows" / f"{name}.json").read_text(encoding="utf-8"))


def changed(value, draw: random.Random, key: str = ""):
    """The record with every measured number multiplied by a random factor; what names a run stays."""
    if isinstance(value, dict):
        return {name: one if name == "source" else changed(one, draw, name) for name, one in value.items()}
    if isinstance(value, list):
        return value if key == "batches" else [changed(one, draw, key) for one in value]
    if isinstance(value, (int, float)) and key not in ("batch", "workers", "images"):
        factor = draw.choice((0.25, 0.5, 0.8, 1, 1.3, 2, 5))
        return min(value * factor, 0.99) if key in ("accuracy", "largest") else value * factor
    return value


def findings(text: str) -> list[str]:
    """The sentences and comparisons of a page, each in one line."""
    lists = [re.sub(r"\s+", " ", one) for one in re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)]
    return lists + re.findall(r"^\| .* agrees? \|$", text, re.MULTILINE)


def verdicts(text: str) -> dict[str, str]:
    """Of a page's comparisons, by what is compared."""
    rows = [line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: row[-1] for row in rows if row[-1] in ("agrees", "does not agree")}


class Pages(unittest.TestCase):
    """All generators."""

    def test_every_page_is_what_its_generator_writes_from_its_rows(self):
        """And all rows are those of a generator."""
        self.assertEqual({path.stem for path in (RESULTS / "rows").iterdir()}, set(GENERATORS))
        for name in GENERATORS:
            with self.subTest(name):
                text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
                self.assertEqual(module(name).page(recorded(name)), text,
                                 f"run scripts/experiments/{name}.py --from docs/results/rows/{name}.json")

    def test_no_finding_is_constant(self):
        """Each sentence, and each row of a comparison, is missing from a page of other rows."""
        for name in GENERATORS:
            draw = random.Random(name)
            pages = [module(name).page(changed(recorded(name), draw)) for _ in range(CHANGES)]
            found = findings(module(name).page(recorded(name)))
            self.assertTrue(found, name)
            for sentence in found:
                with self.subTest(name, finding=sentence):
                    self.assertFalse(all(sentence in findings(page) for page in pages))

    def test_the_source_is_that_of_the_rows(self):
        """Machine, date, commit and command, above every table."""
        for name in GENERATORS:
            text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
            for above in re.findall(r"([^\n]+)\n\n\|", text):
                with self.subTest(name, above=above):
                    self.assertRegex(above,
                                     r"`scripts/experiments/\w+\.py[^`]*`$|^Measured: as the table above$")


class Findings(unittest.TestCase):
    """One change of the rows for each generator, and what has to follow."""

    def test_idle_time(self):
        """The paper's own figures agree, doubled ones do not."""
        generator, record = module("idle_by_policy"), recorded("idle_by_policy")
        for policy, seconds in generator.PAPER.items():
            record["idle_seconds"][policy] = list(seconds or (0, 0, 0, 0))
        self.assertEqual(set(verdicts(generator.page(record)).values()), {"agrees"})
        self.assertNotIn("not** as in", generator.page(record))
        for policy in generator.PAPER:
            record["idle_seconds"][policy] = [2 * one for one in record["idle_seconds"][policy]]
        self.assertEqual(set(verdicts(generator.page(record)).values()), {"does not agree"})

    def test_batch_sizes(self):
        """The paper's own times and accuracies agree; in reverse order they do not."""
        generator, record = module("batch_size"), recorded("batch_size")
        for row in record["rows"]:
            seconds, row["accuracy"], _ = generator.PAPER[row["batch"]]
            row["images_per_second"] = 1e6 / seconds
        self.assertEqual(set(verdicts(generator.page(record)).values()), {"agrees"})
        self.assertNotIn("not** as in", generator.page(record))
        swapped = copy.deepcopy(record)
        for row, other in zip(swapped["rows"], reversed(record["rows"])):
            row |= {key: other[key] for key in ("images_per_second", "accuracy")}
        self.assertEqual(set(verdicts(generator.page(swapped)).values()), {"does not agree"})
        self.assertIn("Batch 16 has the best accuracy, in the paper 128: **not** as in the paper.",
                      generator.page(swapped))

    def test_masters(self):
        """Masters and none change places."""
        generator, record = module("master_or_distributed"), recorded("master_or_distributed")
        speeds = record["images_per_second"]
        self.assertIn("faster in 21 of 21 figures: as in the paper", generator.page(record))
        for master, without in generator.pairs():
            speeds[master.name], speeds[without.name] = speeds[without.name], speeds[master.name]
        self.assertIn("faster in 0 of 21 figures: **not** as in the paper", generator.page(record))
        self.assertIn("slower in batches of none", generator.page(record))
        speeds["4 slowed workers, master, 1 Gbit/s"] = [1] * 6 + [1000]
        speeds["2 slowed workers, master, 1 Gbit/s"][0] *= 2
        text = generator.page(record)
        what = "4 slowed workers, master, 1 Gbit/s: batch that matches one device at 256"
        self.assertEqual(verdicts(text)[what], "agrees")
        self.assertIn("some batch on: as in the paper", re.sub(r"\s+", " ", text))
        self.assertIn("slowed rows do not stand for real ones", re.sub(r"\s+", " ", text))

    def test_shards(self):
        """The rules change places, and a ratio misses that of the sizes."""
        generator, record = module("parameter_shards"), recorded("parameter_shards")
        self.assertIn("By bytes is faster with 4 workers and more: as in the paper", generator.page(record))
        self.assertNotIn("not** reached", generator.page(record))
        for row in record["rows"]:
            row["rule"] = {"layer": "bytes", "bytes": "layer"}[row["rule"]]
        text = generator.page(record)
        self.assertIn("By bytes is not always faster with 4 workers and more: **not** as in the paper", text)
        self.assertEqual(set(verdicts(text).values()), {"does not agree"})
        record["rows"][0]["alone_seconds"] *= 2
        self.assertIn("not** reached", generator.page(record))

    def test_rings(self):
        """Half of the speed scales no more."""
        generator, record = module("ring_speedup"), recorded("ring_speedup")
        self.assertIn("`ring_all_reduce` scales linearly within 20 % at these rates: 10 Gbit/s.",
                      generator.page(record))
        for row in record["scaling"]:
            row["speed_ups"] = [one / 2 for one in row["speed_ups"]]
        text = generator.page(record)
        self.assertIn("`ring_all_reduce` scales linearly within 20 % at these rates: none.", text)
        self.assertEqual(set(verdicts(text).values()), {"does not agree"})

    def test_strategies(self):
        """Runs as simulated agree, and slow ones do not; in the reverse order another one is the fastest."""
        generator, record = module("strategies"), recorded("strategies")
        for row in record["real"]["rows"]:
            for kind in ("tokens_per_second", "bytes_a_token"):
                row[f"measured_{kind}"] = copy.deepcopy(row[f"simulated_{kind}"])
        text = re.sub(r"\s+", " ", generator.page(record))
        self.assertIn("16 of 16 speeds are within 20 % of the simulated ones: the simulation agrees.", text)
        self.assertIn("Slower than simulated: none.", text)
        for row in record["real"]["rows"]:
            row["measured_bytes_a_token"] *= 2
            for rate in row["measured_tokens_per_second"]:
                row["measured_tokens_per_second"][rate] /= 2
        text = re.sub(r"\s+", " ", generator.page(record))
        self.assertIn("0 of 16 speeds are within 20 % of the simulated ones: the simulation does not agree.",
                      text)
        self.assertIn("Slower than simulated: 16, by 50 %.", text)
        self.assertIn("2.00 times the simulated ones (bound: 5 %): does not agree.", text)
        names = [row["strategy"] for row in record["simulated"]["rows"]]
        for row, name in zip(record["simulated"]["rows"], reversed(names)):
            row["strategy"] = name
        self.assertIn("At 1 Gbit/s `data_parallel_master` is the fastest", generator.page(record))
        record["real"] = None
        self.assertNotIn("Real runs", generator.page(record))

    def test_growing_batches(self):
        """The order of losses and of tokens to the target turns round, and a run misses the target."""
        generator, record = module("dynamic_batch"), recorded("dynamic_batch")
        text = generator.page(record)
        self.assertIn('has the row "4"', text)
        self.assertIn("A larger fixed batch always needs more tokens", text)
        kinds = record["kinds"]
        for figure in ("loss_at_tokens", "tokens_to_target"):
            for one, value in zip(kinds.values(), [each[figure] for each in reversed(kinds.values())]):
                one[figure] = value
        kinds["8, none"]["steps_to_target"] = None
        text = generator.page(record)
        self.assertIn('has the row "8, sqrt"', text)
        self.assertIn("A larger fixed batch does **not** always need more tokens", text)
        self.assertIn("| not reached |", text)
        kinds["4"]["tokens_to_target"] = kinds["growing, none"]["loss_at_tokens"] = None
        text = generator.page(record)
        self.assertIn("The fixed batches do not tell the critical batch.", text)
        self.assertIn("is number 6 of 7", text)


def shape(value):
    """Of a record: its names and kinds of values, without how many a list has."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return "number" if value is None or isinstance(value, (int, float)) else type(value).__name__


def made_up_curve(batch: int):
    """Of a run whose loss falls from 7 to 4 while it sees its tokens."""
    curve = module("dynamic_batch").Curve
    length, rounds, tokens = module("dynamic_batch").LENGTH, 20, 8192
    events = [{"event": "evaluation", "tokens": 10, "loss_sum": 70}]
    for number in range(rounds):
        events += [{"event": "step", "tokens": batch * length, "seconds": 0.1}] * (tokens // (batch * length))
        events += [{"event": "evaluation", "tokens": 10, "loss_sum": 70 - 30 * (number + 1) / rounds},
                   {"event": "round", "batch": batch, "tokens": tokens, "noise_scale": 9.0,
                    "gradient_variance": 9.0, "gradient_squared_norm": 1.0}]
    return curve(events)


class Measuring(unittest.TestCase):
    """What generators make of measurements, with made-up ones."""

    def check(self, name: str, measure, **fakes: object):
        """The record has the form of the recorded one, and a page follows from it."""
        script = str(SOURCE / f"scripts/experiments/{name}.py")
        with mock.patch.multiple(module(name), **fakes), mock.patch.object(sys, "argv", [script]), \
                mock.patch("builtins.print"):
            record = json.loads(json.dumps(measure(module(name))))
        self.assertEqual(shape(record), shape(recorded(name)))
        self.assertIn(f"`scripts/experiments/{name}.py`", module(name).page(record))

    def test_idle_time(self):
        """By the simulation's report."""
        site = {"idle_seconds": 1.0, "compute_seconds": 9.0}
        self.check("idle_by_policy", lambda each: each.measure("binary"),
                   simulate=lambda *arguments: ({"sites": [site] * 4}, []))

    def test_rings(self):
        """By the speed of a simulation."""
        self.check("ring_speedup", lambda each: each.measure("binary"), speed=lambda *ways, **links: 100.0)

    def test_batch_sizes(self):
        """By the time of an image, and validations."""
        self.check("batch_size", lambda each: each.measure("binary", 100),
                   seconds_of_image=lambda binary, batch: 1 / batch,
                   learn=lambda binary, batch, images: [(0, 2.0, 0.1), (50, 1.0, 0.5), (100, 0.5, 0.8)])

    def test_masters(self):
        """By images a second."""
        self.check("master_or_distributed", lambda each: each.measure("binary"),
                   largest_batch=lambda binary: 72, images_per_second=lambda *ways: 100.0)

    def test_shards(self):
        """By what the benchmark prints."""
        measured = module("parameter_shards").Measured(5.0, 12.0, 0.5)
        self.check("parameter_shards", lambda each: each.measure("binary"),
                   measure_one=lambda *ways: measured)

    def test_growing_batches(self):
        """By the events of three seeds."""
        generator = module("dynamic_batch")
        names = (*generator.GROWING, *generator.FIXED)
        curves = {name: [made_up_curve(generator.FIXED.get(name, (4,))[0])] * 3 for name in names}
        options = argparse.Namespace(binary="binary", runs=None, seeds=3)
        self.check("dynamic_batch", lambda each: each.measure(options), all_curves=lambda *ways: curves)

    def test_strategies(self):
        """By simulated and real runs; those that are recorded may be kept."""
        real = module("real_strategies")
        outcome = real.Outcome(10.0, 500.0, 8.0, [(0, 0.0, 7.0), (5000, 10.0, 6.0)])
        for simulated_only in (False, True):
            options = argparse.Namespace(binary="binary", output=RESULTS, simulated_only=simulated_only)
            with mock.patch.object(real, "Bench") as bench:
                bench.return_value.both.return_value = (outcome, outcome)
                self.check("strategies", lambda each, options=options: each.measure(options),
                           figures=lambda *ways: (1000.0, 8.0))
                self.assertEqual(bench.called, not simulated_only)


class Publishing(unittest.TestCase):
    """The command line, and where rows come from."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_a_page_is_written_again_without_measuring(self):
        """By the command line, without a program to measure."""
        for name in GENERATORS:
            with self.subTest(name):
                command = [sys.executable, SOURCE / f"scripts/experiments/{name}.py", "--binary", "/none",
                           "--from", RESULTS / f"rows/{name}.json", "--output", self.folder]
                subprocess.run(command, check=False, capture_output=True)  # fails if nothing can draw
                written, kept = ((folder / f"{name}.md").read_bytes() for folder in (self.folder, RESULTS))
                self.assertEqual(written, kept)

    def test_measured_rows_are_kept(self):
        """The file of rows has what the page is made from."""
        options = argparse.Namespace(recorded=None, output=self.folder)
        seen = []
        with mock.patch("builtins.print"):
            experiment.publish("rows", options, lambda: {"speeds": [1.5, 2], "by": {(1): None}}, str,
                               lambda record, path: seen.append((record, path)))
        record = json.loads((self.folder / "rows/rows.json").read_text(encoding="utf-8"))
        self.assertEqual(record, {"speeds": [1.5, 2], "by": {"1": None}})
        self.assertEqual((self.folder / "rows.md").read_text(encoding="utf-8"), str(record))
        self.assertEqual(seen, [(record, self.folder / "rows.svg")])

    def test_the_commit_tells_of_changes(self):
        """Of all files but documents."""
        def git(*words: str) -> str:
            command = ["git", "-c", "user.name=x", "-c", "user.email=x", *words]
            result = subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True)
            return result.stdout.strip()
        git("init")
        (self.folder / "docs").mkdir()
        for name in ("code", "docs/README.md"):
            (self.folder / name).write_text("before", encoding="utf-8")
        git("add", ".")
        git("commit", "-m", "both")
        commit = f"commit {git('rev-parse', '--short=8', 'HEAD')}"
        with mock.patch.object(experiment, "REPOSITORY", self.folder):
            self.assertEqual(experiment.commit(), commit)
            (self.folder / "docs/README.md").write_text("after", encoding="utf-8")
            self.assertEqual(experiment.commit(), commit)
            (self.folder / "code").write_text("after", encoding="utf-8")
            self.assertEqual(experiment.commit(), f"{commit} + changes")

    def test_the_machine_is_this_one(self):
        """Its cores and processor, its GPU if one is used, and the command line with its options."""
        cores = len(experiment.os.sched_getaffinity(0))
        self.assertRegex(experiment.machine(), rf"^{cores} cores of .+ \(family \d+, model \d+\)$")
        programs = StandIns(self.folder / "programs")
        programs.put("nvidia-smi", "echo A GPU")
        with mock.patch.dict("os.environ", {"PATH": f"{programs.folder}:/usr/bin:/bin"}):
            self.assertTrue(experiment.machine(uses_gpu=True).endswith("), A GPU"))
        script = str(SOURCE / "scripts/experiments/idle_by_policy.py")
        with mock.patch.object(sys, "argv", [script, "--binary", "a b"]):
            found = experiment.source("Simulated")
        self.assertEqual(found["command"], "scripts/experiments/idle_by_policy.py --binary 'a b'")
        self.assertEqual(found["machine"], "any machine")
        self.assertRegex(experiment.source_line(found),
                         r"^Simulated: any machine · \d{4}-\d\d-\d\d · commit \w{8}")


if __name__ == "__main__":
    unittest.main()
