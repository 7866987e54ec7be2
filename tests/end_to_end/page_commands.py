"""The commands of a page, read from its fenced blocks: tests run them as they are written.

A block says after its language who runs it, which no renderer shows: ```sh seoul.
"""

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^## (.*)\n", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: the language, the words after it, and the text between the fences."""

    language: str
    words: tuple[str, ...]
    text: str


def blocks_of(text: str) -> list[Block]:
    """All fenced blocks of a page's text, in order."""
    return [Block(language, tuple(words.split()), inside)
            for language, words, inside in FENCE.findall(text)]


def sections_of(page: Path) -> dict[str, str]:
    """The texts below the page's headings of the second level, by heading, in order."""
    _, *parts = SECTION.split(page.read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2]))


def commands_for(page: Path, who: str) -> list[str]:
    """The shell commands that `who` runs, a text a block."""
    return [block.text for block in blocks_of(page.read_text(encoding="utf-8"))
            if block.language == "sh" and block.words[:1] == (who,)]
