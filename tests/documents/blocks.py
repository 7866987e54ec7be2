"""The blocks of the documents, and the marks that say what becomes of their commands.

A mark is a comment in the line above a block; readers do not see it:

    <!-- run: WALK -->                 a walk of test_walks.py runs the block, as it is written
    <!-- run: WALK, file: NAME -->     the walk writes the block to a file of that name
    <!-- run by: tests/PATH -->        another test runs it; after a comma: with what changes
    <!-- not run: REASON -->           no test does

Every block of the language sh has one, other blocks may. Commands stand in blocks of sh alone. A page whose
own test runs it as a whole has no marks, but words for that test after the sh.
"""

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

MARK = re.compile(r"\s*<!-- (run|run by|not run): (.*?)(?:, file: (\S+))? -->$")
FENCE = re.compile(r"( *)```([\w+]*)((?: [\w-]+)*)$")
# What begins a command line of ours, in a block of sh or outside of one.
COMMAND = re.compile(r"(sudo )?(farstep [a-z-]|bundle/\w|build/\w+/\w|scripts/\w|cmake -)")
GUIDE = Path("docs/guide/README.md")
PROGRAMS = re.compile(r"(?:^|/)farstep$")


@dataclass
class Block:
    page: Path
    line: int  # of the fence
    language: str
    text: str
    words: str = ""  # after the language
    kind: str = ""  # of the mark: run, run by, not run; empty without one
    subject: str = ""
    file: str | None = None

    @property
    def place(self) -> str:
        """As editors and compilers write it."""
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """README.md, the guide's pages in the order of its table, then all other pages below docs/."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "docs/*.md"],
                            check=True, capture_output=True, text=True).stdout.split()
    read_first = [Path("README.md"), GUIDE]
    for name in re.findall(r"\]\((\w+\.md)\)", GUIDE.read_text(encoding="utf-8")):
        if (page := GUIDE.parent / name) not in read_first:
            read_first.append(page)
    return read_first + [page for page in map(Path, sorted(listed)) if page not in read_first]


def blocks_of(page: Path, text: str) -> list[Block]:
    """The blocks of a page; code that is indented without a fence is one too, if it has a command."""
    found: list[Block] = []
    open_block: Block | None = None
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if fence := FENCE.match(line):
            if open_block:
                found.append(open_block)
                open_block = None
                continue
            open_block = Block(page, number, fence.group(2), "", fence.group(3))
            if number > 1 and (mark := MARK.match(lines[number - 2])):
                open_block.kind, open_block.subject, open_block.file = mark.groups()
        elif open_block:
            open_block.text += line + "\n"
        elif line.startswith("    ") and COMMAND.match(line.strip()):
            found.append(Block(page, number, "", line.strip() + "\n"))
    return found


def all_blocks() -> list[Block]:
    """Those of all pages."""
    return [block for page in pages() for block in blocks_of(page, page.read_text(encoding="utf-8"))]


def without_here_documents(text: str) -> str:
    """A shell script without the texts that it has for the input of commands."""
    kept, end = [], None
    for line in text.splitlines():
        if end is None:
            kept.append(line)
            if opened := re.search(r"<<-?'?(\w+)'?", line):
                end = opened.group(1)
        elif line.strip() == end:
            end = None
    return "\n".join(kept)


def logical_lines(text: str) -> list[str]:
    """The lines of a script, without here-documents; those of a quoted text are one."""
    lines: list[str] = []
    is_open = False
    for line in without_here_documents(text).replace("\\\n", " ").splitlines():
        if is_open:
            lines[-1] += "\n" + line
        else:
            lines.append(line)
        try:
            shlex.split(lines[-1], comments=True)
            is_open = False
        except ValueError:  # a quotation goes on
            is_open = True
    return lines


def command_lines(text: str) -> list[list[str]]:
    """The words of every simple command of a script."""
    found: list[list[str]] = []
    for line in logical_lines(text):
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        found.append([])
        for word in words:
            if set(word) <= set("();<>|&"):
                found.append([])
            else:
                found[-1].append(word)
    return [words for words in found if words]


def farstep_arguments(words: list[str]) -> list[str] | None:
    """The arguments of farstep in a simple command, also behind what starts another program."""
    for at, word in enumerate(words):
        starts = at == 0 or words[at - 1] in ("--", "sudo", "exec") or "=" in words[at - 1]
        if starts and PROGRAMS.search(word):
            return words[at + 1:]
    return None
