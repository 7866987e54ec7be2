#!/usr/bin/env python3
"""What do FP8 matrix products cost in loss? Standard library only.

One site trains on real text, with the same weights and windows, in bf16 and in fp8 (which a CPU
emulates: the factors are rounded to what FP8 has of them); losses are paired by seed. Model, data and
settings are those of averaging_ablation.py, all sides multiples of 16, so that every product of the
blocks' linear layers takes FP8; needs the data that scripts/quickstart.sh makes.
"""

import argparse

import averaging_ablation as ablation
import codec_loss


def train(arguments: argparse.Namespace, compute: str, seed: int) -> float:
    """One whole run of plain AdamW; the loss over all validation windows at its end."""
    run = ablation.run_file(arguments, ablation.EQUAL, ablation.BASE_RULE, seed)
    run["sites"] = [{"name": ablation.SITES[0]}]
    run["inner"]["compute"] = compute
    run["outer"]["momentum"] = 0
    run["plan"] = {"base_steps": arguments.steps, "base_batch": arguments.batch}
    return codec_loss.final_loss(arguments, f"{compute}-{seed}", run)


def main() -> None:
    """Prints every loss as it comes, then a Markdown row a type."""
    parser = codec_loss.arguments_of(__doc__, "fp8_loss", port=7830)
    parser.add_argument("--steps", type=int, default=250, help="of a round")
    parser.add_argument("--batch", type=int, default=16)
    parser.set_defaults(outer_learning_rate=1)
    arguments = parser.parse_args()
    codec_loss.compare(("bf16", "fp8"), arguments.seeds,
                       lambda compute, seed: train(arguments, compute, seed))


if __name__ == "__main__":
    main()
