#!/usr/bin/env python3
"""Writes tests/golden/hugging_face/: model folders as `transformers` saves them, and what it
computes with them.

Each folder NAME has config.json and the weights, in one file or in shards with an index. NAME.safetensors
beside it has `tokens` (sequences, length) and the `logits` of a float64 model with the saved weights.
rotary.safetensors has CASE/frequencies of published shapes, with CASE/config in its metadata.

Needs torch and transformers (pip install torch transformers safetensors).
"""

import argparse
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "hugging_face"

# Name, members of config.json, dtype of the weights, size of a shard. The rotary scaling has
# frequencies below, between and above its two limits.
FOLDERS = [
    ("llama3_sharded", {"vocab_size": 40, "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2,
                        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 512,
                        "rms_norm_eps": 1e-5, "bos_token_id": 38, "eos_token_id": [37, 39],
                        "rope_theta": 10000.0,
                        "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                         "high_freq_factor": 4.0, "original_max_position_embeddings": 64}},
     torch.bfloat16, "8KB"),
    ("tied_halves", {"vocab_size": 29, "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 1,
                     "num_attention_heads": 3, "num_key_value_heads": 3, "rope_theta": 100000.0,
                     "tie_word_embeddings": True, "max_position_embeddings": 8192,
                     "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2},
     torch.float16, "1GB"),
    ("heads_apart", {"vocab_size": 31, "hidden_size": 20, "intermediate_size": 17, "num_hidden_layers": 2,
                     "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12,
                     "tie_word_embeddings": True},
     torch.float32, "1GB"),
]

# Members that decide the frequencies of published models.
ROTARY = [
    ("smollm2_135m", {"hidden_size": 576, "num_attention_heads": 9, "rope_theta": 100000.0,
                      "max_position_embeddings": 8192}),
    ("llama32_1b", {"hidden_size": 2048, "num_attention_heads": 32, "rope_theta": 500000.0,
                    "max_position_embeddings": 131072,
                    "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
                                     "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}),
    ("llama31_8b", {"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000.0,
                    "max_position_embeddings": 131072,
                    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                     "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}),
]


def write_folder(out: Path, name: str, members: dict, dtype: torch.dtype, shard: str) -> None:
    """Saves a random model, and the logits of its saved weights in float64."""
    model = LlamaForCausalLM(LlamaConfig(**members, attn_implementation="eager"))
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            mean = 1.0 if "norm" in parameter_name else 0.0
            parameter.copy_(mean + 0.3 * torch.randn(parameter.shape) / parameter.shape[-1] ** 0.25)
    model.to(dtype)
    shutil.rmtree(out / name, ignore_errors=True)
    model.save_pretrained(out / name, max_shard_size=shard)
    (out / name / "generation_config.json").unlink(missing_ok=True)
    exact = LlamaForCausalLM.from_pretrained(out / name, dtype=torch.float64, attn_implementation="eager")
    tokens = torch.randint(0, members["vocab_size"], (2, 100))
    with torch.no_grad():
        logits = exact(tokens).logits
    save_file({"tokens": tokens, "logits": logits.float()}, out / f"{name}.safetensors")
    print(f"{name}: {sorted(path.name for path in (out / name).iterdir())}")


def main() -> None:
    """Writes all folders, then the frequencies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=GOLDEN)
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    for folder in FOLDERS:
        write_folder(out, *folder)
    tensors, metadata = {}, {}
    for case, members in ROTARY:
        config = LlamaConfig(**members)
        tensors[f"{case}/frequencies"] = LlamaRotaryEmbedding(config).inv_freq.float()
        metadata[f"{case}/config"] = json.dumps(config.to_dict())
    save_file(tensors, out / "rotary.safetensors", metadata=metadata)


if __name__ == "__main__":
    main()
