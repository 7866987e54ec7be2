"""The versions of the peers that a benchmark ran with, against those that the set-up pins."""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
LISTS = ("python_oracles.txt", "python_torch.txt")


def pins(path: Path | None = None) -> dict[str, str]:
    """By package the version of a list; without one, of the set-up's lists, beside this file in a bundle."""
    if path is None:
        folder = HERE if (HERE / LISTS[0]).exists() else HERE.parents[1] / "scripts"
        return {name: version for one in LISTS for name, version in pins(folder / one).items()}
    return dict(re.findall(r"^([\w-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def described(found: dict[str, str], pinned: dict[str, str] | None = None) -> str:
    """"torch 2.11.0 and transformers 4.57.1", and loudly so if others are pinned."""
    pinned = pins() if pinned is None else pinned
    text = " and ".join(f"{name} {version}" for name, version in found.items())
    other = [f"{name} {pinned.get(name, 'of no version')}" for name, version in found.items()
             if version.partition("+")[0] != pinned.get(name)]  # a build's own label follows "+"
    return f"{text} (NOT THE PINNED VERSIONS, which are {' and '.join(other)})" if other else text
