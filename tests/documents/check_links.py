#!/usr/bin/env python3
"""Checks the documents: every link leads to a file and a heading of it, every path below docs/ to a
file, every document is in the index or in that of its folder (of docs/results/ that is docs/results.md), and
README and images stay small.

Prints every fault as FILE:LINE and exits 1 if there is one.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
MENTION = re.compile(r"(?<![\w/.-])docs/[\w./-]*\w")  # in comments, messages and other documents
ANCHOR = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")
INDEX, README, RESULTS = Path("docs/README.md"), Path("README.md"), Path("docs/results.md")
IMAGE_BYTES = 150_000
README_LINES, README_COLUMNS = 120, 120  # of what a reader sees


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
                            check=True, capture_output=True, text=True).stdout.split("\n")
    return [Path(name) for name in listed if name and Path(name).exists()]


def links_of(page: Path) -> set[Path]:
    """The files that the page links to, as paths from the root of the tree."""
    found = (page.parent / link for link, _ in LINK.findall(page.read_text()) if "://" not in link)
    return {path.resolve().relative_to(Path.cwd()) for path in found}


@cache
def anchors_of(page: Path) -> set[str]:
    """What a link can name after #: the headings as GitHub makes anchors of them."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def faults_of_anchors(page: Path) -> list[str]:
    """Links to headings that are not there."""
    faults = []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for link, anchor in ANCHOR.findall(line):
            target = page.parent / link if link else page
            if "://" not in link and target.suffix == ".md" and target.exists():
                if anchor not in anchors_of(target.resolve()):
                    faults.append(f"{page}:{number}: {target} has no heading #{anchor}")
    return faults


def faults_of_lines(file: Path) -> list[str]:
    try:
        lines = file.read_text().splitlines()
    except UnicodeDecodeError:
        return []
    faults = []
    for number, line in enumerate(lines, 1):
        targets = [Path(path) for path in MENTION.findall(line)]
        if file.suffix == ".md":
            targets += [file.parent / link for link, _ in LINK.findall(line) if "://" not in link]
        faults += [f"{file}:{number}: there is no {path}" for path in targets if not path.exists()]
    return faults


def main() -> int:
    faults = [fault for file in tracked() for fault in faults_of_lines(file)]
    faults += [fault for page in tracked("*.md") for fault in faults_of_anchors(page)]
    indexed = links_of(INDEX)
    for index in indexed & {RESULTS, *tracked("docs/*/README.md")}:
        indexed |= links_of(index)
    faults += [f"{page}:1: no index links to it" for page in tracked("docs/*.md")
               if page != INDEX and page not in indexed]
    lines = [line for line in README.read_text().splitlines() if not line.startswith("<!-- ")]
    if len(lines) >= README_LINES:
        faults.append(f"{README}:{len(lines)}: has {len(lines)} lines, at most {README_LINES - 1} may be")
    faults += [f"{README}:{number}: is {len(line)} columns wide, at most {README_COLUMNS - 1} may be"
               for number, line in enumerate(lines, 1) if len(line) >= README_COLUMNS]
    faults += [f"{image}:1: has {image.stat().st_size} bytes, at most {IMAGE_BYTES} may be"
               for image in tracked("*.png") if image.stat().st_size > IMAGE_BYTES]
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
