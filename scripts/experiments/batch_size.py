#!/usr/bin/env python3
"""Compares batches of 8 to 256 in synchronous training of an image classifier: time, loss and accuracy.

Two sites of one thread train ResNet-18 of width 8 on Fashion-MNIST by ring all-reduce over the loopback interface.
A batch is that of both sites together. All batches see equally many images at one learning rate. Speed is measured
apart from learning: the median of three short runs, which have priority over other work if root starts this. Needs
dataset-fashion-mnist, takes about 12 minutes, and writes docs/results/batch_size.md, .svg and rows/; the drawing needs
python3-matplotlib.
  scripts/experiments/batch_size.py [--binary build/release/farstep] [--output docs/results] [--from ROWS.json]
"""

import math
import statistics
import sys
from pathlib import Path

from experiment import make_parser, publish, pyplot_for, save, source, source_line, table, wrap
from findings import AS_ABOVE, Compared, as_paper, bullets, comparison, span
from real_run import IMAGES, step_periods, train, validations

BATCHES = (8, 16, 32, 64, 128, 256)
# Kim et al.: seconds, accuracy, loss.
PAPER = {8: (14892, 0.3282, 1.7422), 16: (8282, 0.9106, 0.2614), 32: (5379, 0.9381, 0.1765),
         64: (2977, 0.9464, 0.1490), 128: (2300, 0.9465, 0.1497), 256: (2069, 0.8907, 0.3073)}
SITES = [{"data": str(IMAGES)}] * 2
RATE, ROUNDS, TURNS = 0.003, 4, 3
TIMED_IMAGES, LEAST_TIMED_STEPS = 2048, 24
MOST_AT_ONCE = 32  # images that a site passes through the net at once
LEAST_SAVING = 0.05  # of the time of equal samples, for a doubling of the batch that pays
VALIDATION_IMAGES = 10_000


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


def learn(binary: str, batch: int, images: int) -> list[tuple[int, float, float]]:
    """Images so far, validation loss and accuracy along a run on all images."""
    steps = images // (batch * ROUNDS)
    learned = validations(train(binary, run_file(batch, steps, ROUNDS, validate=True), SITES))
    return [(one.round * steps * batch, one.loss, one.accuracy) for one in learned]


def measure(binary: str, images: int) -> dict:
    """The record: for each batch its speed and what it learns."""
    record = {"source": source(), "images": images, "rows": []}
    turns = [{batch: seconds_of_image(binary, batch) for batch in BATCHES} for _ in range(TURNS)]
    for batch in BATCHES:
        learned = learn(binary, batch, images)
        record["rows"].append({
            "batch": batch, "images_per_second": round(1 / statistics.median(turn[batch] for turn in turns), 2),
            "loss": round(learned[-1][1], 4), "accuracy": round(learned[-1][2], 4),
            "curve_images": [count for count, _, _ in learned[1:]],
            "curve_accuracy": [round(accuracy, 4) for _, _, accuracy in learned[1:]]})
    return record


def last_that_pays(seconds: dict[int, float]) -> int:
    """The largest batch up to which each doubling saves enough time."""
    batches = list(seconds)
    last = batches[0]
    for before, after in zip(batches, batches[1:]):
        if seconds[after] > (1 - LEAST_SAVING) * seconds[before]:
            break
        last = after
    return last


def alike(accuracy: dict[int, float]) -> list[str]:
    """Neighbours whose accuracies differ by less than two standard errors of a difference."""
    batches, found = list(accuracy), []
    for before, after in zip(batches, batches[1:]):
        variance = sum(accuracy[one] * (1 - accuracy[one]) / VALIDATION_IMAGES for one in (before, after))
        if abs(accuracy[before] - accuracy[after]) < 2 * math.sqrt(variance):
            found.append(f"{before} and {after}")
    return found


def findings(seconds: dict[int, float], accuracy: dict[int, float]) -> str:
    """What follows from the time of equal samples and the accuracy, by batch, here and in the paper."""
    paper_seconds, paper_accuracy = ({batch: row[column] for batch, row in PAPER.items()} for column in (0, 1))
    best, paper_best = (max(each, key=each.get) for each in (accuracy, paper_accuracy))
    first, last = BATCHES[0], BATCHES[-1]
    lost = {batch: 100 * (accuracy[best] - accuracy[batch]) for batch in accuracy}
    paper_lost = {batch: 100 * (paper_accuracy[paper_best] - paper_accuracy[batch]) for batch in accuracy}
    pays, paper_pays = last_that_pays(seconds), last_that_pays(paper_seconds)
    rows = [Compared(f"time of batch {batch}, by that of {last}", paper_seconds[batch] / paper_seconds[last],
                     seconds[batch] / seconds[last]) for batch in BATCHES[:-1]]
    rows += [Compared(f"points of accuracy that batch {batch} has less than the best", paper_lost[batch], lost[batch])
             for batch in (first, last)]
    rows.append(Compared(f"batch up to which each doubling saves {100 * LEAST_SAVING:.0f} % of the time", paper_pays,
                         pays, 0))
    savings = {after: 100 * (1 - seconds[after] / seconds[before]) for before, after in zip(BATCHES, BATCHES[1:])}
    upto, beyond = ([savings[one] for one in savings if (one <= pays) == paying] for paying in (True, False))
    sentences = []
    if upto:
        sentences.append(f"Up to batch {pays} a doubling saves {span(upto, '{:.0f}')} % of the time.")
    if beyond:
        sentences.append(f"Beyond batch {pays} a doubling saves {span(beyond, '{:.0f}')} %.")
    sentences += [f"Batch {best} has the best accuracy, in the paper {paper_best}: {as_paper(best == paper_best)}.",
                  f"Batch {last} is {lost[last]:.1f} points below the best; in the paper it loses accuracy: "
                  f"{as_paper(lost[last] > 0)}.",
                  f"Batch {pays}, beyond which time gains nothing, is {lost[pays]:.1f} points below the best."]
    if alike(accuracy):
        sentences.append("The accuracies of these batches differ by less than two standard errors: "
                         f"{', '.join(alike(accuracy))}.")
    return comparison(rows) + "\n" + bullets(sentences)


def page(record: dict) -> str:
    """The table, with what agrees with the paper."""
    images = record["images"]
    by_batch = {row["batch"]: row for row in record["rows"]}
    seconds = {batch: images / row["images_per_second"] for batch, row in by_batch.items()}
    rows = [[str(batch), f"{row['images_per_second']:,.0f}", f"{seconds[batch]:.0f}",
             f"{seconds[batch] / seconds[BATCHES[-1]]:.2f}", f"{row['loss']:.3f}", f"{100 * row['accuracy']:.2f} %",
             f"{PAPER[batch][2]:.3f}", f"{100 * PAPER[batch][1]:.2f} %"] for batch, row in by_batch.items()]
    head = ["batch", "images a second", f"seconds of {images:,} images", f"times that of {BATCHES[-1]}",
            "loss", "accuracy", "the paper's loss", "the paper's accuracy"]
    return ("# Batch sizes in synchronous training\n\n"
            + wrap("The head of the script describes the runs. Loss and accuracy are those of all "
                   f"{VALIDATION_IMAGES:,} images for validation after {images:,} images of training, one seed. The "
                   "paper is that of Kim et al.: ResNet-18 on CIFAR-10 with four GPUs. All our runs have one schedule "
                   f"of the learning rate: warm-up to {RATE}, then a cosine. A site passes {MOST_AT_ONCE} images at "
                   "most through the net at once. [What may explain the differences](explanations.md#batch-sizes).")
            + "\n![Time and accuracy by batch](batch_size.svg)\n\n" + source_line(record["source"])
            + table(head, rows) + "\nAgainst the paper:\n\n" + AS_ABOVE
            + findings(seconds, {batch: row["accuracy"] for batch, row in by_batch.items()}))


def draw(record: dict, path: Path):
    """Time of all images, and accuracy along the run."""
    figure, (times, accuracies) = pyplot_for(path).subplots(1, 2, figsize=(11, 4))
    last, rows = BATCHES[-1], record["rows"]
    times.plot(BATCHES, [rows[-1]["images_per_second"] / row["images_per_second"] for row in rows], marker="o",
               label="measured here")
    times.plot(BATCHES, [PAPER[batch][0] / PAPER[last][0] for batch in BATCHES], marker="o", linestyle="--",
               label="Kim et al.")
    times.set_xscale("log", base=2)
    times.set_xlabel("batch of all devices")
    times.set_ylabel(f"time of equal samples, by that of {last}")
    times.legend()
    for row in rows:
        accuracies.plot(row["curve_images"], [100 * accuracy for accuracy in row["curve_accuracy"]], marker="o",
                        label=f"batch {row['batch']}")
    accuracies.set_xlabel(f"images, of {record['images']:,}")
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
    publish("batch_size", options, lambda: measure(options.binary, options.images), page, draw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
