"""Every block of commands in the documents has a mark that says which test runs it, or why none does;
and every command of farstep that they name exists, with these options."""

import os
import re
import subprocess
import unittest
from functools import cache
from pathlib import Path

import test_walks
from blocks import COMMAND, Block, all_blocks, blocks_of, command_lines, farstep_arguments, pages

FARSTEP = os.environ["FARSTEP_BINARY"]
INLINE = re.compile(r"`(?:[\w/]*/)?farstep ([a-z]+)((?: [^`]*)?)`")


def run(*arguments: str) -> subprocess.CompletedProcess:
    """A farstep command, to its end."""
    return subprocess.run([FARSTEP, *arguments], capture_output=True, text=True, check=False, timeout=60)


@cache
def options_of(command: str) -> set[str]:
    """Empty if there is no such command."""
    return set(re.findall(r"--[a-z-]+", run(command, "--help").stdout))


@cache
def is_named_by(page: str, tests: str) -> bool:
    """Whether one of the tests names the page."""
    return any(page in test.read_text(encoding="utf-8") for test in Path().glob(tests))


def faults_of(block: Block) -> list[str]:
    """What is wrong with a block's mark."""
    has_commands = any(COMMAND.match(line) for line in block.text.splitlines())
    if block.language != "sh" and not block.kind:
        is_text = block.language in ("", "bash", "shell", "console")
        return [f"{block.place}: commands stand in a block of sh, with a mark"] if has_commands and is_text else []
    if not block.kind and block.words:
        known = is_named_by(block.page.name, "tests/end_to_end/test_*.py")
        return [] if known else [f"{block.place}: no test in tests/end_to_end runs the page"]
    if not block.kind:
        return [f"{block.place}: has no mark: see tests/documents/blocks.py"]
    if block.kind == "not run":
        return [] if len(block.subject) > 10 else [f"{block.place}: say why it is not run"]
    if block.kind == "run" and block.subject not in test_walks.WALKS:
        return [f"{block.place}: there is no walk {block.subject}"]
    if block.kind == "run by":
        test = block.subject.split(",")[0]
        if not is_named_by(block.page.name, test):
            return [f"{block.place}: {test} does not name {block.page.name}"]
    return []


class Commands(unittest.TestCase):
    """Over all documents."""

    def test_every_block_has_a_mark(self):
        """That holds."""
        blocks = all_blocks()
        self.assertGreater(len([block for block in blocks if block.language == "sh"]), 20)
        self.assertEqual([fault for block in blocks for fault in faults_of(block)], [])

    def test_every_walk_has_blocks(self):
        """None is left over."""
        named = {block.subject for block in all_blocks() if block.kind == "run"}
        self.assertEqual(named, set(test_walks.WALKS))

    def test_faults_are_found(self):
        """Of each kind."""
        def fault(text: str) -> str:
            return "\n".join(fault for block in blocks_of(Path("a.md"), text) for fault in faults_of(block))
        self.assertIn("a.md:1: has no mark", fault("```sh\nls\n```\n"))
        self.assertIn("a.md:1: commands stand in", fault("```\nscripts/setup.sh\n```\n"))
        self.assertIn("a.md:2: commands stand in", fault("\n    farstep train --config x\n"))
        self.assertIn("no walk nowhere", fault("<!-- run: nowhere -->\n```sh\nls\n```\n"))
        self.assertIn("no test in", fault("```sh both\nls\n```\n"))
        self.assertIn("does not name a.md", fault("<!-- run by: tests/documents/blocks.py -->\n```sh\nls\n```\n"))
        self.assertIn("say why", fault("<!-- not run: no -->\n```sh\nls\n```\n"))
        self.assertEqual(fault("<!-- not run: takes an hour -->\n```sh\nls\n```\n"), "")
        self.assertEqual(fault("```json\n{}\n```\n"), "")

    def test_every_command_takes_its_arguments(self):
        """Read by the command itself, which then does nothing."""
        read = 0
        for block in all_blocks():
            if block.language != "sh":
                continue
            for words in command_lines(block.text):
                arguments = farstep_arguments(words)
                if arguments is None or arguments[0].startswith("--"):
                    continue
                with self.subTest(place=block.place, arguments=arguments):
                    result = run("--check-arguments", *arguments)
                    self.assertEqual((result.returncode, result.stderr), (0, ""))
                    read += 1
        self.assertGreater(read, 30)

    def test_wrong_arguments_are_refused(self):
        """By the same means."""
        for arguments, said in ((["train"], "config: is missing"), (["trane"], "is not a command"),
                                (["plan", "--profiles", "a", "--polcy", "x"], "--polcy"),
                                (["keys", "--days", "none"], "days"), ([], "of which command")):
            result = run("--check-arguments", *arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn(said, result.stderr)

    def test_every_option_in_the_text_exists(self):
        """Where the text names a command of farstep with options."""
        found = 0
        for page in pages():
            for command, rest in INLINE.findall(page.read_text(encoding="utf-8").replace("\n", " ")):
                self.assertTrue(options_of(command), f"{page}: there is no `farstep {command}`")
                for option in re.findall(r"--[a-z_-]+", rest):
                    self.assertIn(option, options_of(command), f"{page}: `farstep {command}{rest}`")
                    found += 1
        self.assertGreater(found, 10)


if __name__ == "__main__":
    unittest.main()
