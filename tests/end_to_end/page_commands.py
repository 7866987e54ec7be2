"""The commands of a page, read from its fenced blocks: tests run them as they are written.

A block says after its language who runs it, which no renderer shows: ```sh seoul.
"""

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: the language, the words after it, and the text between the fences."""

    language: str
    words: tuple[str, ...]
    text: str


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of the page, in order."""
    return [Block(language, tuple(words.split()), text)
            for language, words, text in FENCE.findall(page.read_text(encoding="utf-8"))]


def commands_for(page: Path, who: str) -> list[str]:
    """The shell commands that `who` runs, a text a block."""
    return [block.text for block in blocks_of(page)
            if block.language == "sh" and block.words[:1] == (who,)]
