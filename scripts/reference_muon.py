#!/usr/bin/env python3
"""Writes tests/golden/muon.safetensors: matrices that `torch.optim.Muon` has updated.

For each case: the matrix at the start, the gradient of each step, and the matrix after each step.
The scale is the one of adjust_lr_fn="match_rms_adamw".

Needs torch 2.11 (pip install torch safetensors). Tensors are named CASE/start (rows, columns),
CASE/gradients and CASE/values (steps, rows, columns), all fp32; the metadata has CASE/settings.
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "muon.safetensors"
STEPS = 8
RATE = 0.003

# Name, rows, columns, settings. Wide, tall, square, a vector; with and without Nesterov.
CASES = [
    ("wide", 12, 40, {"momentum": 0.95, "nesterov": True, "weight_decay": 0.1, "iterations": 5}),
    ("tall", 33, 8, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.0, "iterations": 5}),
    ("square", 24, 24, {"momentum": 0.95, "nesterov": False, "weight_decay": 0.3, "iterations": 3}),
    ("row", 1, 17, {"momentum": 0.5, "nesterov": True, "weight_decay": 0.1, "iterations": 5}),
]


def trajectory(rows: int, columns: int, settings: dict) -> dict[str, torch.Tensor]:
    """The tensors of one case."""
    start = torch.randn(rows, columns)
    matrix = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.Muon(
        [matrix], lr=RATE, momentum=settings["momentum"], nesterov=settings["nesterov"],
        weight_decay=settings["weight_decay"], ns_steps=settings["iterations"],
        adjust_lr_fn="match_rms_adamw")
    gradients, values = [], []
    for _ in range(STEPS):
        matrix.grad = torch.randn(rows, columns)
        gradients.append(matrix.grad.clone())
        optimizer.step()
        values.append(matrix.detach().clone())
    return {"start": start, "gradients": torch.stack(gradients), "values": torch.stack(values)}


def main() -> None:
    """Computes every case and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=GOLDEN)
    out: Path = parser.parse_args().out
    torch.manual_seed(11)
    tensors: dict[str, torch.Tensor] = {}
    metadata: dict[str, str] = {}
    for case, rows, columns, settings in CASES:
        for name, tensor in trajectory(rows, columns, settings).items():
            tensors[f"{case}/{name}"] = tensor
        metadata[f"{case}/settings"] = json.dumps(settings | {"learning_rate": RATE})
    save_file(tensors, out, metadata)
    print(f"{out}: {len(tensors)} tensors")


if __name__ == "__main__":
    main()
