"""Sentences that follow from rows: figures beside those of a paper, with a verdict by a bound."""

from typing import NamedTuple

from experiment import table, wrap

WITHIN = 0.20  # of the paper's figure, for a figure that agrees
AS_ABOVE = "Measured: as the table above\n\n"  # the source of a second table of the same run


class Compared(NamedTuple):
    """A figure of a paper, and the same here; None if there is no such figure here."""

    what: str
    paper: float
    here: float | None
    digits: int = 2


def agrees(paper: float, here: float | None, within: float = WITHIN) -> bool:
    """Whether a figure is within the bound of the paper's."""
    if here is None:
        return False
    return abs(here - paper) <= within * abs(paper)


def verdict(good: bool) -> str:
    """In a table."""
    return "agrees" if good else "does not agree"


def comparison(rows: list[Compared]) -> str:
    """A table: the paper's figure, the one here, their ratio, and the verdict."""
    lines = []
    for what, paper, here, digits in rows:
        ratio = "-" if here is None or not paper else f"{here / paper:.2f}"
        lines.append([what, f"{paper:,.{digits}f}", "none" if here is None else f"{here:,.{digits}f}", ratio,
                      verdict(agrees(paper, here))])
    return table(["", "the paper", "here", "ratio", f"within {100 * WITHIN:.0f} %"], lines)


def bullets(sentences: list[str]) -> str:
    """A list in Markdown."""
    return "".join(wrap(f"- {sentence}", "  ") for sentence in sentences)


def as_paper(same: bool) -> str:
    """The verdict on a claim without a figure."""
    return "as in the paper" if same else "**not** as in the paper"


def names(words: list) -> str:
    """A, B and C; "none" without any."""
    words = [str(word) for word in words]
    if len(words) < 2:
        return words[0] if words else "none"
    return f"{', '.join(words[:-1])} and {words[-1]}"


def span(values: list[float], form: str = "{:.2f}") -> str:
    """Least to most, or the one value that both print."""
    least, most = form.format(min(values)), form.format(max(values))
    return least if least == most else f"{least} to {most}"
