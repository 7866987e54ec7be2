"""Runs the commands of the documents as a reader would, block by block, in a folder of its own.

A walk takes the blocks with its name (blocks.py) in the order of the pages. It runs each by bash as it is
written, but for SIZES: numbers that would make it long, and addresses of machines that are not there. What
a page says that the reader has (a text, another site's config) is made before; `beside` plays the other
site. `scp` copies to folders in place of machines.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path
from typing import Callable

from blocks import Block, all_blocks

FARSTEP = Path(os.environ["FARSTEP_BINARY"]).resolve()
SOURCE = Path(__file__).resolve().parents[2]
SECONDS = 300  # that a block may take, on a machine with other work

# In the documents -> in the walks. Ports are replaced too, by free ones.
SIZES = {
    "--train-vocabulary 32000": "--train-vocabulary 400",
    '"model": {"preset": "150m"}': '"model": {"preset": "tiny"}, "data": {"sequence_length": 32}',
    '"rounds": 200': '"rounds": 2',
    '"base_steps": 500, "base_batch": 64, "micro_batch": 8': '"base_steps": 8, "base_batch": 2, "micro_batch": 2',
    "farstep profile ": "farstep profile --seconds 0.02 ",
    '{"kind": "cuda"}': '{"kind": "cpu", "threads": 1}',
    "--device cuda": "--device cpu --threads 1 --rounds 2 --base-steps 8 --base-batch 2 --sequence-length 32",
    "seoul=203.0.113.10": "seoul=127.0.0.1:7400",
    "203.0.113.10": "127.0.0.1",  # Seoul
    "198.51.100.4": "127.0.0.2",  # Lyon
    "10.0.0.5": "127.0.0.1",
}
SCP = """#!/bin/sh
# scp -rp FOLDER USER@MACHINE:NAME
exec cp -rp "$2" "$MACHINES/${3#*@}"
"""


def free_ports(number: int) -> int:
    """The first of so many TCP ports in a row that nobody listens on, at both addresses."""
    for first in range(21000 + os.getpid() % 5000, 32000, number):
        try:
            for port in range(first, first + number):
                for address in ("127.0.0.1", "127.0.0.2"):
                    with socket.socket() as probe:
                        probe.bind((address, port))
            return first
        except OSError:
            continue
    raise AssertionError("no ports are free")


class Place:
    """The folder of a walk, and what runs in it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.ports = free_ports(12)
        self.processes: list[subprocess.Popen] = []
        (folder / "build/release").mkdir(parents=True)
        (folder / "build/release/farstep").symlink_to(FARSTEP)
        (folder / "bin").mkdir()
        (folder / "bin/farstep").symlink_to(FARSTEP)
        (folder / "bin/scp").write_text(SCP)
        (folder / "bin/scp").chmod(0o755)
        shutil.copytree(SOURCE / "configs", folder / "configs")
        self.environment = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
                                         "HOME": str(folder), "MACHINES": str(folder)}
        novel = (SOURCE / ".deps/corpus/austen/persuasion.txt").read_text(encoding="utf-8")
        (folder / "corpus").mkdir()
        (folder / "corpus/novel.txt").write_text(novel[:150_000])
        (folder / "chapter.txt").write_text(novel[150_000:152_000])

    def sized(self, text: str) -> str:
        """A block as the walk runs it."""
        for written, here in SIZES.items():
            text = text.replace(written, here)
        for written, offset in (("7400", 0), ("7401", 1), ("8377", 6), ("7500", 7)):
            text = text.replace(written, str(self.ports + offset))
        return text

    def start(self, script: str) -> subprocess.Popen:
        """Starts a script in a process group of its own."""
        self.processes.append(subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True))
        return self.processes[-1]

    def close(self):
        """Ends what still runs."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    def run(self, script: str) -> str:
        """Runs a script to its end, which must be a good one; returns what it printed."""
        return self.end(self.start(script))

    @staticmethod
    def end(process: subprocess.Popen, codes: tuple[int, ...] = (0,)) -> str:
        """Waits for a script's end."""
        try:
            printed, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired as late:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"not over after {SECONDS} s; it printed\n{process.communicate()[0]}") from late
        assert process.returncode in codes, f"exit code {process.returncode}; it printed\n{printed[-4000:]}"
        return printed

    def wait_for(self, *names: str):
        """Until these files are there."""
        deadline = time.monotonic() + SECONDS
        while not all((self.folder / name).exists() for name in names):
            assert time.monotonic() < deadline, f"not there: {names}"
            time.sleep(0.05)  # between two looks at what another process makes


# What the other site does while a block runs at this one.
def train_at_lyon(place: Place):
    """Lyon trains too, by the guide's config."""
    place.run("farstep train lyon.json")


def examine_at_lyon(place: Place):
    """Lyon examines its links too."""
    place.run("farstep doctor mine/lyon.json --peers")


def examine_and_train_at_lyon(place: Place):
    """Lyon does what README.md says for every site."""
    examine_at_lyon(place)
    place.run("farstep train mine/lyon.json --resume=auto")


def profile_at_lyon(place: Place):
    """Lyon measures its links too."""
    place.run("farstep profile --seconds 0.02 lyon.json --links --out lyon.profile.json")


def before_the_guide(place: Place):
    """What a reader has by then: the quickstart's data, a model's tokenizer, questions."""
    place.run("farstep tokenize corpus --output data/quickstart --train-vocabulary 400")
    run = place.folder / "configs/quickstart/run.json"
    run.write_text(run.read_text().replace('"rounds": 10', '"rounds": 2')
                   .replace('"base_steps": 25', '"base_steps": 8'))
    for site in (place.folder / "configs/quickstart").glob("node*.json"):
        site.write_text(site.read_text().replace("7411", str(place.ports + 10)))
    model = place.folder / "SmolLM2-135M"
    model.mkdir()
    shutil.copy(SOURCE / "tests/golden/tokenizers/bytes.model", model / "tokenizer.model")
    question = {"ctx": "She walked", "endings": ["to the house.", "blue.", "of of.", "seven."], "label": 0}
    (place.folder / "hellaswag_val.jsonl").write_text((json.dumps(question) + "\n") * 2)


def make_a_model(place: Place):
    """A Hugging Face folder in place of SmolLM2's: the model that the guide trained."""
    shutil.rmtree(place.folder / "SmolLM2-135M")
    place.run("farstep export runs/mine/seoul --output SmolLM2-135M")


def before_profiles(place: Place):
    """Two profiles, and a scenario of the reader's own."""
    for name in ("node1.json", "node2.json"):
        shutil.copy(SOURCE / "configs/scenarios/paper" / name, place.folder)
    shutil.copy(SOURCE / "configs/scenarios/spread_4_to_1.json", place.folder / "my_sites.json")


def members_of(json_value) -> set[str]:
    """The names of all members, but for what has names of its own: causes, and records of events."""
    if isinstance(json_value, list):
        return set().union(*map(members_of, json_value))
    if not isinstance(json_value, dict):
        return set()
    named_elsewhere = ("idle_seconds", "views", "sync_changes")
    inside = (members_of(value) for name, value in json_value.items() if name not in named_elsewhere)
    return set(json_value).union(*inside)


def check_the_documents(address: str, token: str):
    """Every member of the answers, and every metric, is in the page that lists them."""
    page = (SOURCE / "docs/watch_api.md").read_text(encoding="utf-8")
    for path in ("status", "report", "charts", "timeline?seconds=all"):
        request = urllib.request.Request(f"{address}api/{path}", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            found = members_of(json.load(answer))
        assert len(found) > 3, found
        missing = [name for name in found if f"`{name}`" not in page]
        assert not missing, f"docs/watch_api.md has no {missing} of /api/{path}"
    request = urllib.request.Request(f"{address}metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        metrics = {line.split()[2] for line in answer.read().decode().splitlines() if line.startswith("# TYPE")}
    assert len(metrics) > 20, metrics
    missing = [name for name in metrics if f"`{name}`" not in page]
    assert not missing, f"docs/watch_api.md has no metrics {missing}"


def read_the_page(place: Place):
    """With the token alone the page is served, and its answers are as the documents say."""
    place.wait_for("token")
    address = f"http://127.0.0.1:{place.ports + 6}/"
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            token = (place.folder / "token").read_text().strip()
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with browser.open(f"{address}?token={token}", timeout=10) as answer:
                assert b"<html" in answer.read()
            break
        except urllib.error.URLError:
            assert time.monotonic() < deadline, "the page is not served"
            time.sleep(0.05)  # until it listens
    check_the_documents(address, token)
    try:
        urllib.request.urlopen(address, timeout=10)
        raise AssertionError("the page is served without the token")
    except urllib.error.HTTPError as refused:
        assert refused.code == 401, refused.code


class Walk:
    """What happens around the blocks. Keys of the dictionaries are texts of the blocks."""

    def __init__(self, before: Callable[[Place], None] | None = None,
                 beside: dict[str, Callable[[Place], None]] | None = None,
                 ahead_of: dict[str, Callable[[Place], None]] | None = None,
                 until: dict[str, Callable[[Place], None]] | None = None,
                 after: Callable[[Place], None] | None = None):
        self.before = before
        self.beside = beside or {}  # while a block runs
        self.ahead_of = ahead_of or {}  # just before a block
        self.until = until or {}  # a block that does not end gets Ctrl-C after this
        self.after = after

    def run(self, place: Place, blocks: list[Block]):
        """All blocks, in their order."""
        if self.before:
            self.before(place)
        for block in blocks:
            if block.file:
                (place.folder / block.file).write_text(place.sized(block.text))
                continue
            for written, action in self.ahead_of.items():
                if written in block.text:
                    action(place)
            try:
                self.run_block(place, block)
            except AssertionError as failure:
                raise AssertionError(f"{block.place}: {failure}") from failure
        if self.after:
            self.after(place)

    def run_block(self, place: Place, block: Block):
        """One block, with what runs beside it."""
        failures: list[BaseException] = []

        def other(action: Callable[[Place], None]):
            try:
                action(place)
            except BaseException as failure:  # shown by the thread that waits
                failures.append(failure)
        threads = [threading.Thread(target=other, args=(action,))
                   for written, action in self.beside.items() if written in block.text]
        for thread in threads:
            thread.start()
        process = place.start(place.sized(block.text))
        for written, action in self.until.items():
            if written in block.text:
                try:
                    action(place)
                finally:
                    os.killpg(process.pid, signal.SIGINT)
                place.end(process, codes=(0, 130))
                break
        else:
            place.end(process)
        for thread in threads:
            thread.join(timeout=SECONDS)
            assert not thread.is_alive(), "the other site is not over"
        if failures:
            raise failures[0]


WALKS = {
    "readme": Walk(beside={"doctor mine/seoul.json --peers": examine_and_train_at_lyon}),
    "guide": Walk(before=before_the_guide,
                  beside={"train seoul.json": train_at_lyon,
                          "doctor mine/seoul.json --peers": examine_at_lyon,
                          "profile seoul.json --links": profile_at_lyon},
                  ahead_of={"farstep import": make_a_model},
                  until={"farstep watch": read_the_page}),
    "profiles": Walk(before=before_profiles),
    "keys": Walk(),
}


class Walks(unittest.TestCase):
    """Each walk is a test."""

    def walk(self, name: str):
        """Runs one in a new folder."""
        blocks = [block for block in all_blocks() if (block.kind, block.subject) == ("run", name)]
        self.assertTrue(blocks)
        with tempfile.TemporaryDirectory(prefix="farstep-walk-") as folder:
            place = Place(Path(folder))
            try:
                WALKS[name].run(place, blocks)
            finally:
                place.close()

    def test_the_readme(self):
        """Two sites, without and with keys."""
        self.walk("readme")

    def test_the_guide(self):
        """From the text to the exported model."""
        self.walk("guide")

    def test_profiles(self):
        """Plans and simulations of given profiles."""
        self.walk("profiles")

    def test_keys(self):
        """Making and revoking them."""
        self.walk("keys")

    def test_every_walk_is_a_test(self):
        """None is forgotten here."""
        names = {name.removeprefix("test_").removeprefix("the_") for name in dir(self) if name.startswith("test_")}
        self.assertLessEqual(set(WALKS), names)


if __name__ == "__main__":
    unittest.main()
