#!/usr/bin/env python3
"""What does a codec cost in loss? Standard library only.

Four equal sites train on real text, with the same weights and windows, once a codec; losses are
paired by seed. Model, data and settings are those of averaging_ablation.py; needs the data that
scripts/quickstart.sh makes.
"""

import argparse
import json
import shutil
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import averaging_ablation as ablation


def final_loss(arguments: argparse.Namespace, name: str, run: dict) -> float:
    """Runs it in a folder of that name; the loss over all validation windows at its end."""
    folder = arguments.work / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(run))
    for site in run["sites"]:
        config = ablation.site_file(arguments, site["name"])
        (folder / f"{site['name']}.json").write_text(json.dumps(config))
    ablation.farstep(arguments, "launch", folder)
    report = json.loads(ablation.farstep(arguments, "report", folder / "out", "--json"))
    shutil.rmtree(folder)
    return report["final_loss"]


def compare(kinds: Sequence[str], seeds: Sequence[int],
            train: Callable[[str, int], float]) -> None:
    """Prints every loss as it comes, then a Markdown row a kind against the first of them."""
    losses: dict[str, list[float]] = {kind: [] for kind in kinds}
    for seed in seeds:
        for kind, of_kind in losses.items():
            of_kind.append(train(kind, seed))
            print(f"seed {seed}: {kind} {of_kind[-1]:.5f}", flush=True)
    print(f"| | mean loss | minus that of {kinds[0]}, mean (least to most) |\n|---|---|---|")
    for kind, of_kind in losses.items():
        differences = [own - first for own, first in zip(of_kind, losses[kinds[0]])]
        print(f"| {kind} | {statistics.mean(of_kind):.4f} | {statistics.mean(differences):+.4f} "
              f"({min(differences):+.4f} to {max(differences):+.4f}) |")


def arguments_of(description: str, folder: str, port: int) -> argparse.ArgumentParser:
    """What programs that compare losses of whole runs are told."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path,
                        default=ablation.REPOSITORY / "build/release/farstep")
    parser.add_argument("--data", type=Path, default=ablation.REPOSITORY / "data/quickstart")
    parser.add_argument("--work", type=Path, default=ablation.REPOSITORY / "runs" / folder)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--port", type=int, default=port)
    return parser


def train(arguments: argparse.Namespace, codec: str, seed: int) -> float:
    """One whole run of a codec."""
    run = ablation.run_file(arguments, ablation.EQUAL, ablation.BASE_RULE, seed)
    run["sync"] = {"codec": {"kind": codec, "block": arguments.block}, "fragments": arguments.fragments,
                   "delay_steps": arguments.delay_steps}
    run["plan"] = {"base_steps": ablation.CONDITIONS[ablation.EQUAL][0][0]}
    return final_loss(arguments, f"{codec}-{seed}", run)


def main() -> None:
    """Prints every loss as it comes, then a Markdown row a codec."""
    parser = arguments_of(__doc__, "codec_loss", port=7820)
    parser.add_argument("--codecs", nargs="+", default=["int8", "int4"])
    parser.add_argument("--block", type=int, help="values that share a scale")
    parser.add_argument("--fragments", type=int, default=1)
    parser.add_argument("--delay-steps", type=int, default=0)
    parser.add_argument("--outer-learning-rate", type=float, default=0.7)
    arguments = parser.parse_args()
    compare(["fp32", *arguments.codecs], arguments.seeds,
            lambda codec, seed: train(arguments, codec, seed))


if __name__ == "__main__":
    main()
