#!/usr/bin/env python3
"""What a loss and its gradient would be wrong by if logits were bf16.

Normal logits of several deviations, targets drawn from them; all in fp64 but for the rounding.
Standard library only; 32000 and 12 take half a minute.
"""

import argparse
import math
import random
import struct


def rounded(x: float) -> float:
    """x as bf16, to the nearest, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0]


def cross_entropy(logits: list[float], target: int) -> tuple[float, list[float]]:
    """The loss and its gradient in the logits."""
    largest = max(logits)
    exponentials = [math.exp(x - largest) for x in logits]
    total = math.fsum(exponentials)
    gradient = [x / total for x in exponentials]
    gradient[target] -= 1
    return math.log(total) + largest - logits[target], gradient


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vocabulary", type=int, nargs="?", default=32000)
    parser.add_argument("rows", type=int, nargs="?", default=12)
    options = parser.parse_args()
    vocabulary, rows = options.vocabulary, options.rows
    random.seed(1)
    for deviation in (1, 3, 5):
        loss_errors, error, own_error, norm = [], 0.0, 0.0, 0.0
        for _ in range(rows):
            logits = [random.gauss(0, deviation) for _ in range(vocabulary)]
            # The largest with Gumbel noise is a draw from the softmax.
            target = max(range(vocabulary),
                         key=lambda i: logits[i] - math.log(-math.log(random.random())))
            loss, gradient = cross_entropy(logits, target)
            bf16_loss, bf16_gradient = cross_entropy([rounded(x) for x in logits], target)
            loss_errors.append(bf16_loss - loss)
            error += sum((a - b) ** 2 for a, b in zip(gradient, bf16_gradient))
            own_error += sum((rounded(a) - a) ** 2 for a in gradient)
            norm += sum(a * a for a in gradient)
        rms = math.sqrt(sum(e * e for e in loss_errors) / rows)
        print(f"deviation {deviation}: a token's loss {rms:.4f} nats, the gradient "
              f"{math.sqrt(error / norm):.1e}, rounded itself {math.sqrt(own_error / norm):.1e}",
              flush=True)


if __name__ == "__main__":
    main()
