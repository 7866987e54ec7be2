#!/usr/bin/env python3
"""Compares batches of 8 to 256 in synchronous training of an image classifier: time, loss and accuracy.

Two sites of one thread train ResNet-18 of width 8 on Fashion-MNIST by ring all-reduce over the loopback interface.
A batch is that of both sites together. All batches see equally many images at one learning rate. Speed is measured
apart from learning: the median of three short runs, which have priority over other work if root starts this. Needs
dataset-fashion-mnist, takes about 12 minutes, and writes docs/results/batch_size.md and .svg; the drawing needs
python3-matplotlib.
  scripts/experiments/batch_size.py [--binary build/release/farstep] [--output docs/results]
"""

import statistics
import sys
from pathlib import Path
from typing import NamedTuple

from experiment import make_parser, pyplot_for, save, table, write
from real_run import IMAGES, step_periods, train, validations

BATCHES = (8, 16, 32, 64, 128, 256)
# Kim et al.: seconds, accuracy, loss.
PAPER = {8: (14892, 0.3282, 1.7422), 16: (8282, 0.9106, 0.2614), 32: (5379, 0.9381, 0.1765),
         64: (2977, 0.9464, 0.1490), 128: (2300, 0.9465, 0.1497), 256: (2069, 0.8907, 0.3073)}
SITES = [{"data": str(IMAGES)}] * 2
RATE, ROUNDS, TURNS = 0.003, 4, 3
TIMED_IMAGES, LEAST_TIMED_STEPS = 2048, 24
MOST_AT_ONCE = 32  # images that a site passes through the net at once
NOTES = f"""
Two cores of an Intel Xeon (Emerald Rapids), other work beside it. A site passes {MOST_AT_ONCE} images at most through
the net at once. The standard error of an accuracy near 88 % over 10,000 images is 0.3 points, so batches 16 and 32 are
not told apart.

- **Agrees with the paper:** equal samples take less time with larger batches, and the curve flattens: up to 64 each
  doubling saves 16 to 34 % of the time, beyond that nothing. The paper's gains end at 128. A large batch loses
  accuracy, as 256 does there.
- **Differs, time:** batch 8 takes 2.4 times as long as 256, in the paper 7.2 times. A step of 8 images pays for
  the exchange and for small matrix products, but a core has no kernels to launch, and its links are loopback. From 64
  on a site has {MOST_AT_ONCE} images at once, so a larger batch only repeats such passes.
- **Differs, accuracy:** the smallest batch is the best here, in the paper those in the middle, and 8 fails there. We
  see three likely reasons. With group norm, small batches do not disturb the statistics of batch norm, as 2 images a
  GPU do. AdamW and clipping bear noisy gradients at this rate. And two epochs are few: a batch of 256 has 468 steps,
  one of 8 has 15,000. The paper's long runs give large batches steps enough, ours do not.
- **Where more batch stops paying:** in time at 64, where it costs 1.4 points against batch 8. A rate tuned for each
  batch, or longer runs, would move that. Neither was measured.
"""

Curve = list[tuple[int, float, float]]  # images so far, validation loss, accuracy


class Result(NamedTuple):
    """One row."""

    image_seconds: float
    curve: Curve


def run_file(batch: int, steps: int, rounds: int, validate: bool) -> dict:
    """A run of rounds of `steps` steps."""
    return {"seed": 1, "model": {"family": "images", "images": {"preset": "resnet18", "width": 8}},
            "data": {"images": {"crop_padding": 0}}, "strategy": {"kind": "ring_all_reduce"},
            "sync": {"exchange": "ring"},
            "inner": {"peak_learning_rate": RATE, "warmup_fraction": 0.05, "final_fraction": 0.01,
                      "adamw": {"weight_decay": 0.05}},
            "outer": {"rounds": rounds},
            "plan": {"base_steps": steps, "base_batch": batch // len(SITES),
                     "micro_batch": min(batch // len(SITES), MOST_AT_ONCE)},
            "evaluate": {"every_rounds": int(validate), "windows": 0},
            "checkpoint": {"every_rounds": 10000}}


def seconds_of_image(binary: str, batch: int) -> float:
    """By the median step of a short run, both sites together."""
    steps = max(LEAST_TIMED_STEPS, TIMED_IMAGES // batch)
    periods = step_periods(train(binary, run_file(batch, steps, 1, validate=False), SITES, timed=True))
    return statistics.median(periods[len(periods) // 4:]) / batch  # the first ones warm up


def learn(binary: str, batch: int, images: int) -> Curve:
    """Trains on all images."""
    steps = images // (batch * ROUNDS)
    learned = validations(train(binary, run_file(batch, steps, ROUNDS, validate=True), SITES))
    return [(one.round * steps * batch, one.loss, one.accuracy) for one in learned]


def page(results: dict[int, Result], images: int) -> str:
    """The table, with what agrees with the paper."""
    rows = []
    for batch, (image_seconds, curve) in results.items():
        seconds, accuracy, loss = PAPER[batch]
        rows.append([str(batch), f"{1 / image_seconds:,.0f}", f"{images * image_seconds:.0f}",
                     f"{image_seconds / results[BATCHES[-1]].image_seconds:.2f}",
                     f"{seconds / PAPER[BATCHES[-1]][0]:.2f}",
                     f"{curve[-1][1]:.3f}", f"{100 * curve[-1][2]:.2f} %", f"{loss:.3f}", f"{100 * accuracy:.2f} %"])
    head = ["batch", "images a second", f"seconds of {images:,} images", "times that of 256", "the paper's",
            "loss", "accuracy", "the paper's loss", "the paper's accuracy"]
    return ("# Batch sizes in synchronous training\n\n"
            "`scripts/experiments/batch_size.py`: its head describes the runs. Loss and accuracy are those of all\n"
            f"10,000 images for validation after {images:,} images of training, one seed. The paper is that of Kim et\n"
            "al.: ResNet-18 on CIFAR-10 with four GPUs. The learning rate follows one schedule in all our runs:\n"
            f"warm-up to {RATE}, then a cosine.\n\n"
            "![Time, loss and accuracy by batch](batch_size.svg)\n\n" + table(head, rows) + NOTES)


def draw(results: dict[int, Result], images: int, path: Path):
    """Time of all images, and accuracy along the run."""
    figure, (times, accuracies) = pyplot_for(path).subplots(1, 2, figsize=(11, 4))
    last = BATCHES[-1]
    times.plot(BATCHES, [results[batch].image_seconds / results[last].image_seconds for batch in BATCHES],
               marker="o", label="measured here")
    times.plot(BATCHES, [PAPER[batch][0] / PAPER[last][0] for batch in BATCHES], marker="o", linestyle="--",
               label="Kim et al.")
    times.set_xscale("log", base=2)
    times.set_xlabel("batch of all devices")
    times.set_ylabel(f"time of equal samples, by that of {last}")
    times.legend()
    for batch in BATCHES:
        curve = results[batch].curve
        accuracies.plot([count for count, _, _ in curve[1:]], [100 * accuracy for _, _, accuracy in curve[1:]],
                        marker="o", label=f"batch {batch}")
    accuracies.set_xlabel(f"images, of {images:,}")
    accuracies.set_ylabel("validation accuracy (%)")
    accuracies.legend()
    for axes in (times, accuracies):
        axes.grid(True, alpha=0.3)
    save(figure, path)


def main() -> int:
    """Trains, writes and prints."""
    parser = make_parser(__doc__)
    parser.add_argument("--images", type=int, default=120_000, help="that each run trains on")
    options = parser.parse_args()
    turns = [{batch: seconds_of_image(options.binary, batch) for batch in BATCHES} for _ in range(TURNS)]
    results = {batch: Result(statistics.median(turn[batch] for turn in turns),
                             learn(options.binary, batch, options.images)) for batch in BATCHES}
    write(options.output / "batch_size.md", page(results, options.images))
    draw(results, options.images, options.output / "batch_size.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
