#!/usr/bin/env python3
"""Writes tests/golden/tokenizers/: small tokenizers, hard texts, and their ids by Python's libraries.

Needs `pip install tokenizers==0.23.3 sentencepiece==0.2.3`. The byte-level kinds share one vocabulary, which is trained without a pre-tokenizer: so it has tokens over
the borders of words, and a wrong border shows in the ids.
"""

import argparse
import gzip
import json
import random
import tempfile
import unicodedata
from pathlib import Path

import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "tokenizers"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]

HARD = [
    "", " ", "  ", "\n", "\n\n\n", "\t\t", "a", "Hello, world!", " leading", "trailing ", "a  b   c    d",
    "I'm you're it's WE'LL They'D don't 's", "x'S y'ſ K'ſ", "windows\r\nlines\r\n\r\nend\r", "mixed\r\r\n\n\ttext \n x",
    "3.14159 1,000,000 ½ ² Ⅷ ٣٤٥ 二〇二六 12345678", "a1b22c333d4444", "_under_scores__ and-dashes--here...", "!!! ??? ;;; {}[]()<>",
    "def f(x):\n    return x ** 2\n\n\nclass A:\n\tpass\n", "café CAFÉ cafe\u0301 n\u0303 Å Å ﬁ ﬀ ß ẞ", "Привет, мир! Ёлка",
    "Γειά σου Κόσμε", "שלום עולם", "مرحبا بالعالم ٠١٢", "नमस्ते दुनिया क्षत्रिय", "สวัสดีชาวโลก", "你好，世界。今天天气很好！",
    "こんにちは、世界。カタカナ ﾊﾝｶｸ", "안녕하세요 세계", "\u1100\u1161\u11a8", "ქართული ენა ᲥᲐᲠᲗᲣᲚᲘ", "Հայերեն", "አማርኛ", "ᠮᠣᠩᠭᠣᠯ\u180eᠬᠡᠯᠡ",
    "👍🏽 👨‍👩‍👧‍👦 🇰🇷🇫🇷 ☺️ 😀😀😀", "𝒳𝓎𝓏 𝟘𝟙𝟚 𐍈𐌰 𠀀𠮷", "zero\u200bwidth\u200djoin\ufeffbom", "nb\u00a0sp\u2003em\u3000id\u2028ls\u2029ps\u0085nel",
    "\x00\x01\x02\x07\x08\x0b\x0c\x1b\x7f\x80\x9f", "\ufffd\ufffe\U0010ffff\ue000", " " * 50, "\n" * 40, "a" * 90, "ab" * 50,
    " \n" * 10 + "x", " " * 9 + "x" + " " * 7 + "\n" + " " * 5, "\r\n" * 20, "= " * 20, "A" * 40 + "b" * 40,
    "new letters \ua7cb\u1c89\u1c8a \U000105c0\U00010d4a \U00010d40\U000116d0 \U00010d4e\U00031350 \U0001fae9\U0001cd00\u0897",
    "<s>bos</s> <|end|> <|end|>x <|end|>\n", "text<|end|><|end|> <mask> x <mask>y", "word wordy aword word.", "WORD\nword word",
    "[tok] [tok]  [tok]\n[tok]", "   [left] x[left]y \n\t[right]  z[right]  \n w", "caf\u00e9-token cafe\u0301-token",
    "▁▁ literal▁space ▁", "<0x41><0x0A>", "url: https://example.org/a_b?c=d&e=%20#f", "e\u0301\u0327o\u0308\u0323 \u0301 lone",
    "ﷺ ㎏ ① ｆｕｌｌ", "\u0130\u0131 Iı ǅ", "mañana\u2019s \u201cquoted\u201d \u2014 dash\u2026",
]


def added(content, **flags):
    """An entry of added_tokens without its id."""
    entry = {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": True}
    return entry | flags


def byte_level(prefix=False, regex=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


def kinds():
    """Name, normalizer, pre-tokenizer, added tokens, and changes of the model."""
    end = [added("<|end|>")]
    plain = byte_level(regex=False)
    flagged = end + [added("<mask>", lstrip=True), added("word", single_word=True, special=False),
                     added("[tok]", lstrip=True, rstrip=True, special=False), added("[left]", lstrip=True, special=False),
                     added("[right]", rstrip=True, special=False), added("  ", normalized=True, special=False),
                     added("    ", normalized=True, special=False)]
    yield "gpt2", None, byte_level(), end, {}
    yield "gpt2_prefix", None, byte_level(prefix=True), end, {}
    yield "llama3", None, sequence(split(LLAMA3), plain), end, {"ignore_merges": True}
    yield "smollm2", None, sequence({"type": "Digits", "individual_digits": True}, byte_level()), end, {}
    yield "digits", None, sequence({"type": "Digits", "individual_digits": False}, byte_level(prefix=True)), end, {}
    yield "qwen2", {"type": "NFC"}, sequence(split(QWEN2), plain), end + [added("caf\u00e9-token", normalized=True)], {}
    yield "gpt4o", None, sequence(split(GPT4O), plain), end, {"ignore_merges": True}
    yield "deepseek", {"type": "Sequence", "normalizers": []}, sequence(*map(split, DEEPSEEK), plain), end, {}
    yield "nfkd", {"type": "Sequence", "normalizers": [{"type": "NFKD"}]}, byte_level(), end, {}
    yield "nfd", {"type": "NFD"}, byte_level(), end, {}
    yield "nfkc", {"type": "NFKC"}, byte_level(), end, {}
    yield "flags", None, byte_level(), flagged, {}
    yield "words_removed", None, sequence(split(r"\s+", "Removed"), plain), end, {}
    yield "words_kept", None, sequence(split(GPT2, "Removed", invert=True), plain), end, {}
    yield "previous", None, sequence(split(" ", "MergedWithPrevious", kind="String"), plain), end, {}
    yield "next", None, sequence(split(r"\s", "MergedWithNext"), plain), end, {}
    yield "contiguous", None, sequence(split(r"[\p{L}\d]", "Contiguous"), plain), end, {}
    yield "empty_matches", None, sequence(split(r"x*", "Isolated"), plain), end, {}
    yield "none", None, plain, end, {}


def byte_vocabulary(texts):
    """A byte-level vocabulary of 700 tokens, with merges over everything but newlines."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r".{1,12}|\s+"), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())["model"]


def character_vocabulary(texts):
    """A vocabulary of characters with byte fallback, as LLaMA 2 has it."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always")
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=800, special_tokens=special, limit_alphabet=120,
                                                              show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    return model | {"byte_fallback": True}


def character_kinds():
    special = [added("<unk>"), added("<s>"), added("</s>")]
    prepend = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                                                   {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    yield "llama2", prepend, None, special, {}
    yield "llama2_unknown", prepend, None, special, {"byte_fallback": False}
    for scheme in ("first", "always", "never"):
        metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": scheme != "first"}
        yield f"metaspace_{scheme}", None, metaspace, special, {"fuse_unk": scheme != "never", "byte_fallback": False}


def whole(model, kind):
    """The tokenizer.json of a kind."""
    _, normalizer, pre_tokenizer, tokens, changes = kind
    vocabulary = dict(model["vocab"])
    numbered = []
    for token in tokens:
        identity = vocabulary.setdefault(token["content"], len(vocabulary))
        numbered.append({"id": identity} | token)
    by_bytes = pre_tokenizer is not None and "ByteLevel" in json.dumps(pre_tokenizer)
    decoder = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": numbered, "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": decoder if by_bytes else None,
            "model": model | changes}


def other_than(expected, values):
    """The values that are not the expected ones, by their index: keeps the file small."""
    return {str(i): value for i, value in enumerate(values) if value != expected[i]}


def reference_kind(model_name, model, kind, cases, base):
    """What a test needs to make the tokenizer.json, and the ids of the cases where they are not those of `base`."""
    file = whole(model, kind)
    tokenizer = Tokenizer.from_str(json.dumps(file))
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in cases]
    made = {name: file[name] for name in ("added_tokens", "normalizer", "pre_tokenizer", "decoder")}
    base = base or [[]] * len(cases)
    result = {"name": kind[0], "model": model_name, "changes": kind[4], "file": made, "ids": other_than(base, ids)}
    if made["decoder"]:
        result["decoded"] = other_than(cases, [tokenizer.decode(each) for each in ids])
    return result, ids


def sentencepiece_models(folder, lines, cases):
    """Small models, and the ids of all cases."""
    options = {
        "bytes": {"model_type": "bpe", "byte_fallback": True, "add_dummy_prefix": False, "split_digits": True,
                  "user_defined_symbols": ["\n", "\t", "<tag>", "ab"], "vocab_size": 600},
        "prefix": {"model_type": "bpe", "byte_fallback": True, "add_dummy_prefix": True, "vocab_size": 600},
        "unknown": {"model_type": "bpe", "byte_fallback": False, "add_dummy_prefix": True, "vocab_size": 400,
                    "character_coverage": 0.98, "split_by_whitespace": False},
        "unigram": {"model_type": "unigram", "byte_fallback": True, "add_dummy_prefix": True, "vocab_size": 640},
    }
    kinds = []
    for name, option in options.items():
        with tempfile.TemporaryDirectory() as work:
            text = Path(work, "text")
            text.write_text("\n".join(lines), encoding="utf-8")
            sentencepiece.SentencePieceTrainer.train(
                input=str(text), model_prefix=str(Path(work, "out")), normalization_rule_name="identity",
                remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, num_threads=1, minloglevel=2,
                max_sentence_length=4192, **option)
            model = Path(work, "out.model").read_bytes()
        Path(folder, f"{name}.model").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        ids = processor.encode(cases)
        kinds.append({"name": name, "ids": ids,
                      "decoded": other_than(cases, [processor.decode(each) for each in ids])})
    return kinds


def mixed_cases(count):
    """Joins pieces of the hard texts at random, so that their borders meet."""
    random.seed(1)
    pieces = [text[:24] for text in HARD if text]
    return ["".join(random.choice(pieces)[random.randrange(3):] for _ in range(random.randrange(2, 7)))
            for _ in range(count)]


def write_reference(folder, paths):
    texts = [Path(path).read_text(encoding="utf-8") for path in paths]
    lines = [line for text in texts for line in text.split("\n")][:20000] + HARD * 20
    cases = HARD + mixed_cases(60)
    byte_model, character_model = byte_vocabulary(lines), character_vocabulary(lines)
    golden = {"cases": cases, "models": {"bytes": byte_model, "characters": character_model}}
    golden["kinds"] = []
    for name, model, its_kinds in (("bytes", byte_model, kinds()), ("characters", character_model, character_kinds())):
        base = None  # the ids of the first kind
        for kind in its_kinds:
            row, ids = reference_kind(name, model, kind, cases, base)
            base = base or ids
            golden["kinds"].append(row)
    # SentencePiece's text files have no such characters in their lines.
    plain = [text for text in lines if "\x00" not in text and "\n" not in text and "\r" not in text]
    golden["sentencepiece"] = sentencepiece_models(folder, plain, cases)
    text = json.dumps(golden, separators=(",", ":")) + "\n"
    Path(folder, "reference.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def print_characters():
    """The characters that tokenizers' regular expressions know and Unicode 14 does not, by category."""
    assert unicodedata.unidata_version == "14.0.0", "needs Python 3.11"
    stand_ins = [{"Mn": 0xe31, "Mc": 0x903, "Po": 0x964, "Lu": 0x1e00, "Ll": 0x1e01, "So": 0x2500},
                 {"Lo": 0x20000, "Nd": 0x104a0, "Lm": 0x16b40, "Lu": 0x10400, "Ll": 0x10428, "Mn": 0x1d167, "Mc": 0x11000,
                  "Pd": 0x10ead, "Sm": 0x1d6c1, "Po": 0x10100, "So": 0x1f600, "Cf": 0xe0001, "No": 0x10107}]
    everything = [chr(c) for c in range(1, 0x110000) if not 0xd800 <= c < 0xe000]
    new = {c for c in everything if unicodedata.category(c) == "Cn"}
    rows = []
    categories = {}
    for category in sorted({name for table in stand_ins for name in table}):
        cut = pre_tokenizers.Split(Regex(rf"\p{{{category}}}"), "removed").pre_tokenize_str("".join(everything))
        left = {character for part, _ in cut for character in part}
        categories |= {character: category for character in new - left}
    for character in sorted(categories):
        category = categories[character]
        if rows and rows[-1][1] + 1 == ord(character) and rows[-1][2] == category:
            rows[-1][1] = ord(character)
        else:
            rows.append([ord(character), ord(character), category])
    for first, last, category in rows:
        print(f"{{{first:#x}, {last:#x}, {stand_ins[first >= 0x10000][category]:#x}}},")


def main() -> None:
    """Writes the files, or prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("texts", nargs="*", type=Path, help="text files to train on")
    parser.add_argument("--out", type=Path, default=GOLDEN)
    parser.add_argument("--characters", action="store_true",
                        help="print the rows of trainer/data/text/new_characters.cpp instead; needs Python 3.11")
    options = parser.parse_args()
    if options.characters:
        print_characters()
    elif options.texts:
        write_reference(options.out, options.texts)
    else:
        parser.error("name text files, or --characters")


if __name__ == "__main__":
    main()
