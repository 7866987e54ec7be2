"""Trains one small LLaMA of `transformers` at several sites. Each site is one process:

    python3 llama_sites.py --site paris --host austen/*.txt
    python3 llama_sites.py --site tokyo austen/*.txt

PYTHONPATH has the folder of the package `farstep`. The model has random weights, and its tokens are the
bytes of the text, of which each site takes its own part. AdamW is the inner optimizer.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import farstep
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def make_model() -> LlamaForCausalLM:
    """The same bits at all sites."""
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, bos_token_id=None, eos_token_id=None))


def batches(text: bytes, place: int, sites: int, size: int = 8, length: int = 64) -> Iterator[torch.Tensor]:
    """Random windows of a site's part of the text: shape [size, length]."""
    part = len(text) // sites
    ids = torch.frombuffer(bytearray(text[place * part:(place + 1) * part]), dtype=torch.uint8).long()
    chance = torch.Generator().manual_seed(place)
    while True:
        begins = torch.randint(len(ids) - length, (size,), generator=chance)
        yield torch.stack([ids[begin:begin + length] for begin in begins])


def inner_step(model: LlamaForCausalLM, optimizer: torch.optim.Optimizer, ids: torch.Tensor) -> float:
    """Takes one step; returns the loss before it, in nats a token."""
    optimizer.zero_grad()
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def main():
    """Trains, and tells the loss of each round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("text", nargs="+", type=Path, help="text files")
    parser.add_argument("--site", required=True, help="name of this site")
    parser.add_argument("--sites", nargs="+", default=["paris", "tokyo"], metavar="NAME")
    parser.add_argument("--coordinator", default="tcp://127.0.0.1:7070", help="where the sites meet")
    parser.add_argument("--host", action="store_true", help="host the coordinator here")
    parser.add_argument("--address", default="127.0.0.1", help="of this host, for the other sites")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--every", type=int, default=20, help="inner steps of a round")
    parser.add_argument("--momentum", type=float, default=0.5, help="0.9 suits long runs")
    parser.add_argument("--output", type=Path, help="folder for the trained model")
    options = parser.parse_args()

    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    text = b"".join(path.read_bytes() for path in options.text)
    own = batches(text, options.sites.index(options.site), len(options.sites))
    losses = []
    with farstep.OuterOptimizer(model.parameters(), run="llama", sites=options.sites, site=options.site,
                                coordinator=options.coordinator, host=options.host,
                                address=options.address, every=options.every,
                                momentum=options.momentum) as outer:
        while outer.rounds < options.rounds:
            ids = next(own)
            losses.append(inner_step(model, optimizer, ids))
            done = outer.step(batch=len(ids), tokens=ids.numel())
            if done:
                print(f"round {done.number}: loss {sum(losses) / len(losses):.4f}, weights {done.hash}",
                      flush=True)
                losses.clear()
    if options.output:
        model.save_pretrained(options.output)


if __name__ == "__main__":
    main()
