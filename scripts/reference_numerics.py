#!/usr/bin/env python3
"""Writes tests/golden/llama.safetensors: what a LLaMA must compute, according to `transformers`.

For each case: weights and tokens drawn from a fixed seed, the loss, and every gradient. The reference
runs in float64 on the fp32 weights, so that a comparison measures Farstep's rounding alone.

Needs torch and transformers (pip install torch transformers safetensors). Tensors are named
CASE/weights/NAME, CASE/gradients/NAME (fp32), CASE/tokens (sequences, length + 1) and CASE/loss;
the metadata has CASE/config, its config.json, and CASE/names, its parameters in order.
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "llama.safetensors"

# Name, shape, sequences, length. Odd sizes, groups of 1 and 3 queries, tied and not, one token.
CASES: list[tuple[str, dict[str, int | float | bool], int, int]] = [
    ("plain", {"vocab_size": 61, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
               "num_attention_heads": 3, "num_key_value_heads": 3}, 3, 17),
    ("grouped_tied", {"vocab_size": 53, "hidden_size": 36, "intermediate_size": 29, "num_hidden_layers": 2,
                      "num_attention_heads": 6, "num_key_value_heads": 2, "rope_theta": 100000.0,
                      "rms_norm_eps": 1e-3, "tie_word_embeddings": True}, 2, 33),
    ("one_key_head", {"vocab_size": 7, "hidden_size": 20, "intermediate_size": 1, "num_hidden_layers": 1,
                      "num_attention_heads": 2, "num_key_value_heads": 1}, 1, 100),
    ("one_token", {"vocab_size": 11, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 4}, 1, 1),
]


def build(shape: dict[str, int | float | bool]) -> LlamaForCausalLM:
    """The reference in float64; its weights are fp32 values, and its norms are not all ones."""
    config = LlamaConfig(**{"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
                            "tie_word_embeddings": False, "attn_implementation": "eager", **shape})
    model = LlamaForCausalLM(config).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            mean = 1.0 if "norm" in name else 0.0
            parameter.copy_((mean + 0.1 * torch.randn(parameter.shape)).float())
    return model


def main() -> None:
    """Computes every case and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=GOLDEN)
    out: Path = parser.parse_args().out

    torch.manual_seed(7)
    tensors: dict[str, torch.Tensor] = {}
    metadata: dict[str, str] = {}
    for case, shape, sequences, length in CASES:
        model = build(shape)
        tokens = torch.randint(0, int(shape["vocab_size"]), (sequences, length + 1))
        logits = model(tokens[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        for name, parameter in model.named_parameters():
            tensors[f"{case}/weights/{name}"] = parameter.detach().float()
            tensors[f"{case}/gradients/{name}"] = parameter.grad.float()
        tensors[f"{case}/tokens"] = tokens
        tensors[f"{case}/loss"] = loss.detach().float().reshape(1)
        metadata[f"{case}/config"] = json.dumps(model.config.to_dict())
        metadata[f"{case}/names"] = json.dumps([name for name, _ in model.named_parameters()])
        print(f"{case}: loss {loss.item():.6f}, {model.num_parameters()} parameters")
    out.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out, metadata=metadata)
    print(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
