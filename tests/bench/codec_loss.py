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
from pathlib import Path

import averaging_ablation as ablation


def train(arguments: argparse.Namespace, codec: str, seed: int) -> float:
    """One whole run; the loss over all validation windows at its end."""
    folder = arguments.work / f"{codec}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run = ablation.run_file(arguments, ablation.EQUAL, ablation.BASE_RULE, seed)
    run["sync"] = {"codec": {"kind": codec, "block": arguments.block}, "fragments": arguments.fragments,
                   "delay_steps": arguments.delay_steps}
    run["plan"] = {"base_steps": ablation.CONDITIONS[ablation.EQUAL][0][0]}
    (folder / "run.json").write_text(json.dumps(run))
    for name in ablation.SITES:
        (folder / f"{name}.json").write_text(json.dumps(ablation.site_file(arguments, name)))
    ablation.farstep(arguments, "launch", folder)
    report = json.loads(ablation.farstep(arguments, "report", folder / "out", "--json"))
    shutil.rmtree(folder)
    return report["final_loss"]


def main() -> None:
    """Prints every loss as it comes, then a Markdown row a codec."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path,
                        default=ablation.REPOSITORY / "build/release/farstep")
    parser.add_argument("--data", type=Path, default=ablation.REPOSITORY / "data/quickstart")
    parser.add_argument("--work", type=Path, default=ablation.REPOSITORY / "runs/codec_loss")
    parser.add_argument("--codecs", nargs="+", default=["int8", "int4"])
    parser.add_argument("--block", type=int, help="values that share a scale")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--fragments", type=int, default=1)
    parser.add_argument("--delay-steps", type=int, default=0)
    parser.add_argument("--outer-learning-rate", type=float, default=0.7)
    parser.add_argument("--port", type=int, default=7820)
    arguments = parser.parse_args()
    losses: dict[str, list[float]] = {codec: [] for codec in ["fp32", *arguments.codecs]}
    for seed in arguments.seeds:
        for codec, of_codec in losses.items():
            of_codec.append(train(arguments, codec, seed))
            print(f"seed {seed}: {codec} {of_codec[-1]:.5f}", flush=True)
    print("| codec | mean loss | minus that of fp32, mean (least to most) |\n|---|---|---|")
    for codec, of_codec in losses.items():
        differences = [own - exact for own, exact in zip(of_codec, losses["fp32"])]
        print(f"| {codec} | {statistics.mean(of_codec):.4f} | {statistics.mean(differences):+.4f} "
              f"({min(differences):+.4f} to {max(differences):+.4f}) |")


if __name__ == "__main__":
    main()
