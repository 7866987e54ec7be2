#!/usr/bin/env python3
"""Checks that every result says where it is from: above each table of docs/results/ stands a paragraph

    Measured: MACHINE · DATE · commit HASH · `COMMAND`

docs/results.md explains the form. The commit is in the history and the command's program in the tree. A
paragraph that begins so has the form on every page of docs/, also where no table follows. Each page of
docs/results/ has at most 300 lines. A page that scripts/experiments/ makes may have no source at all.

Prints every fault as FILE:LINE and exits 1 if there is one. Usage: check_results.py [PAGE...]
"""

import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

from check_links import tracked

PAGES = "docs/results/"
MOST_LINES = 300
BEGIN = re.compile(r"(Measured|Simulated): ")
SAME_RUN = "Measured: as the table above"
DAY = r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
DATE = re.compile(rf"{DAY}( to {DAY})?")
HASH = r"[0-9a-f]{8,40}"
COMMIT = re.compile(rf"((recorded in |joined into )?commit {HASH}|commits {HASH}(, {HASH})+)")
COMMANDS = re.compile(r"`[^`]+`(, `[^`]+`)*")
UNREPEATABLE = re.compile(r"cannot be repeated: \w.*")
WRAPPERS = {"python3": 1, "chrt": 3}  # programs that start another one, and their own words
BUILDERS = {"cmake", "ctest"}


@cache
def history() -> tuple[str, ...]:
    """All commits up to this one; empty without a full clone."""
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()
    is_full = git("rev-parse", "--is-shallow-repository") == "false"
    return tuple(git("rev-list", "HEAD").split()) if is_full else ()


@cache
def programs() -> set[str]:
    """Names of what the build makes."""
    text = "".join(file.read_text(encoding="utf-8") for file in tracked("*CMakeLists.txt"))
    return set(re.findall(r"(?:add_executable|farstep_\w*test)\(\s*([\w-]+)", text))


def fault_of_command(command: str) -> str:
    """Empty if its program is in the tree."""
    words = shlex.split(command)
    while words and (re.match(r"[A-Z_]+=", words[0]) or words[0] in WRAPPERS):
        words = words[WRAPPERS.get(words[0], 1):]
    if not words:
        return f"`{command}` has no program"
    program = Path(words[0])
    if words[0] in BUILDERS or program.is_file():
        return ""
    is_built = program.name in programs() and (program.parent in (Path(), Path("build/release")))
    return "" if is_built else f"there is no program {words[0]}"


def faults_of_source(text: str) -> list[str]:
    """What is wrong with a paragraph that says where figures are from."""
    fields = BEGIN.sub("", text, count=1).split(" · ")
    if len(fields) < 4:
        return ["the fields are: MACHINE · DATE · commit HASH · `COMMAND`"]
    (machine, date, commit), ways = fields[:3], fields[3:]
    faults = []
    if not re.search(r"\w", machine):
        faults.append("there is no machine")
    if not DATE.fullmatch(date):
        faults.append(f"'{date}' is no date")
    if not COMMIT.fullmatch(commit):
        faults.append(f"'{commit}' names no commit by 8 digits")
    elif history():
        faults += [f"{known} is not in the history" for known in re.findall(rf"\b{HASH}\b", commit)
                   if not any(full.startswith(known) for full in history())]
    has_commands = COMMANDS.fullmatch(ways[0])
    if has_commands:
        faults += filter(None, map(fault_of_command, re.findall(r"`([^`]+)`", ways.pop(0))))
    if len(ways) > 1 or any(not UNREPEATABLE.fullmatch(way) for way in ways):
        faults.append("there is a command in backquotes, or 'cannot be repeated: REASON', or both")
    if commit.startswith("joined") and not ways:
        faults.append("what was measured at a commit that is not in the history cannot be repeated")
    return faults


def paragraphs(text: str) -> list[tuple[int, str]]:
    """Of each, also of each table: the number of its first line, and its lines joined by spaces. Blocks of
    code are left out."""
    text = re.sub(r"^ *```.*?^ *```$", lambda code: "\n" * code[0].count("\n"), text,
                  flags=re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, found.start()) + 1, " ".join(found[0].split()))
            for found in re.finditer(r"^\|.*(?:\n\|.*)*|^[^|\s].*(?:\n(?!\|).*\S.*)*", text, re.MULTILINE)]


def faults_of_page(page: Path, text: str, is_strict: bool) -> list[str]:
    """Of a page; a strict one has a source above each table."""
    faults, last, has_source = [], "", False
    for number, paragraph in paragraphs(text):
        if BEGIN.match(paragraph):
            if paragraph == SAME_RUN:
                wrong = [] if has_source else ["no table above says where it is from"]
            else:
                wrong, has_source = faults_of_source(paragraph), True
            faults += [f"{page}:{number}: {fault}" for fault in wrong]
        elif paragraph.startswith("|") and is_strict and not BEGIN.match(last):
            faults.append(f"{page}:{number}: no paragraph 'Measured: ...' stands above the table")
        last = paragraph
    return faults


def is_experiment(page: Path) -> bool:
    """Whether a script of that name makes it."""
    return Path("scripts/experiments", page.stem + ".py").exists()


def faults_of_file(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    is_result = page.is_relative_to(PAGES)
    names_sources = any(BEGIN.match(paragraph) for _, paragraph in paragraphs(text))
    faults = faults_of_page(page, text, is_result and (names_sources or not is_experiment(page)))
    if is_result and text.count("\n") > MOST_LINES:
        faults.append(f"{page}:{MOST_LINES}: has {text.count(chr(10))} lines, at most {MOST_LINES} may be")
    return faults


def main() -> int:
    pages = [Path(name) for name in sys.argv[1:]] or tracked("docs/*.md")
    faults = [fault for page in pages for fault in faults_of_file(page)]
    if not sys.argv[1:] and not any(page.is_relative_to(PAGES) for page in pages):
        faults.append(f"{PAGES}:1: has no pages")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
