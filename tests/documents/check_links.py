#!/usr/bin/env python3
"""Checks the documents: every link and every path below docs/ leads to a file, every document is in
the index, and the README stays short.

Prints every fault as FILE:LINE and exits 1 if there is one.
"""

import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
MENTION = re.compile(r"(?<![\w/.-])docs/[\w./-]*\w")  # in comments, messages and other documents
INDEX, README = Path("docs/README.md"), Path("README.md")
README_LINES, README_COLUMNS = 120, 120


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
                            check=True, capture_output=True, text=True).stdout.split("\n")
    return [Path(name) for name in listed if name and Path(name).exists()]


def links_of(page: Path) -> set[Path]:
    """The files that the page links to, as paths from the root of the tree."""
    found = (page.parent / link for link, _ in LINK.findall(page.read_text()) if "://" not in link)
    return {path.resolve().relative_to(Path.cwd()) for path in found}


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
    indexed = links_of(INDEX)
    faults += [f"{page}:1: {INDEX} does not link to it" for page in tracked("docs/*.md")
               if page != INDEX and page not in indexed]
    lines = README.read_text().splitlines()
    if len(lines) >= README_LINES:
        faults.append(f"{README}:{len(lines)}: has {len(lines)} lines, at most {README_LINES - 1} may be")
    faults += [f"{README}:{number}: is {len(line)} columns wide, at most {README_COLUMNS - 1} may be"
               for number, line in enumerate(lines, 1) if len(line) >= README_COLUMNS]
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
