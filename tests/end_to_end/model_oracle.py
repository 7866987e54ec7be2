"""What `transformers` makes of model folders; runs in the Python of oracles.py.

Reads a JSON object from standard input. `make`: models to write first, each with `folder`, members of its
`config`, and `headless` if it is saved without its head. `ask`: questions, each with the `folder` of a model and
some of `text`, `prompt` and `choices`. Prints a list of answers: `ids` of the text, its `loss`, the `continued`
text of the prompt by the likeliest tokens and how many `new_tokens` it has, and which of the `choices` are the
likeliest. `start` is the token before a text that the tokenizer puts nothing before.
"""

import json
import sys

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

WORDS = "the quick brown fox jumps over a lazy dog tick tock goes clock Once upon time".split()
SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]


def make_tokenizer() -> Tokenizer:
    """One of bytes, with the names of Llama 3, which puts nothing around a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    lines = [" ".join(WORDS[(line * step) % len(WORDS)] for step in range(9)) for line in range(200)]
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=320, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def make(folder: str, config: dict, headless: bool = False):
    """A small model of random values, large enough that another first token changes all that follows."""
    torch.manual_seed(5)
    tokenizer = make_tokenizer()
    shape = {"vocab_size": tokenizer.get_vocab_size(), "hidden_size": 48, "intermediate_size": 64,
             "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
             "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 1}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape | config))
    (model.model if headless else model).save_pretrained(folder)
    tokenizer.save(f"{folder}/tokenizer.json")


def answer(model, tokenizer, asked: dict) -> dict:
    """What a folder's model and tokenizer say."""
    found = {}

    def ids_of(text: str) -> list[int]:
        return tokenizer(text)["input_ids"]

    def scored(text: str) -> list[int]:
        ids = ids_of(text)
        opened = not tokenizer("x")["input_ids"] == tokenizer("x", add_special_tokens=False)["input_ids"]
        return ids if opened else [asked["start"], *ids]

    def log_chances(ids: list[int]) -> torch.Tensor:
        logits = model(torch.tensor([ids])).logits[0, :-1].double().log_softmax(-1)
        return logits.gather(1, torch.tensor(ids[1:]).unsqueeze(1)).squeeze(1)

    if "text" in asked:
        found["ids"] = ids_of(asked["text"])
        found["loss"] = -log_chances(scored(asked["text"])).mean().item()
    if "prompt" in asked:
        ids = torch.tensor([ids_of(asked["prompt"])])
        made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=asked["tokens"],
                              do_sample=False, pad_token_id=2)[0, ids.shape[1]:].tolist()
        found["new_tokens"] = made
        ends = model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        found["continued"] = tokenizer.decode(made[:-1] if made[-1] in ends else made)
    if "choices" in asked:
        found["choices"] = []
        for question in asked["choices"]:
            context = len(scored(question["ctx"]))
            sums = [log_chances(scored(f"{question['ctx']} {ending}"))[context - 1:].sum().item()
                    for ending in question["endings"]]
            found["choices"].append(sums.index(max(sums)))
    return found


def main():
    """Answers all of standard input."""
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    given = json.load(sys.stdin)
    for each in given.get("make", []):
        make(**each)
    answers = []
    with torch.no_grad():
        for asked in given["ask"]:
            tokenizer = transformers.AutoTokenizer.from_pretrained(asked["folder"])
            model = transformers.AutoModelForCausalLM.from_pretrained(asked["folder"], dtype=torch.float32)
            answers.append(answer(model, tokenizer, asked))
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
