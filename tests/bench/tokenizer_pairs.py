#!/usr/bin/env python3
"""Compares the ids and the speed of Farstep's tokenizers with those of Python's `tokenizers` and `sentencepiece`.

Encodes a text on one thread in turn: by tokenizer_bench, in its pieces, and by the Python library, in parts of 64 KiB,
which suit it better than a long text. Prints the medians in MB of text a second of processor time, and whether the ids
of the whole text are equal. With --threads N, `farstep tokenize` as a command competes with encode_batch() on N threads
in time by the clock; the library gets the text and its vocabulary for free.
"""

import argparse
import importlib.metadata
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from peer_versions import described

PART_CHARACTERS = 1 << 16


def version_of_peer(path: Path) -> str:
    """The library that competes, loud if it is not the pinned version."""
    name = "tokenizers" if path.name.endswith(".json") else "sentencepiece"
    return described({name: importlib.metadata.version(name)})


def python_encoder(path: Path):
    """A function from text to ids."""
    if path.name.endswith(".json"):
        from tokenizers import Tokenizer
        library = Tokenizer.from_file(str(path))
        library.encode_special_tokens = True  # names in a text are text
        return lambda text: library.encode(text, add_special_tokens=False).ids
    import sentencepiece
    return sentencepiece.SentencePieceProcessor(model_file=str(path)).encode


def compete_on_threads(options: argparse.Namespace) -> None:
    """Prints the medians of both in MB a second by the clock."""
    os.environ |= {"TOKENIZERS_PARALLELISM": "true", "RAYON_NUM_THREADS": str(options.threads)}
    from tokenizers import Tokenizer
    library = Tokenizer.from_file(str(options.tokenizer))
    text = options.text.read_bytes().decode()
    parts = [text[begin:begin + PART_CHARACTERS] for begin in range(0, len(text), PART_CHARACTERS)]
    megabytes = len(text.encode()) / 1e6
    ours, theirs = [], []
    for _ in range(options.pairs):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            subprocess.run([options.farstep, "tokenize", options.text, "--output", Path(folder, "data"), "--tokenizer",
                            options.tokenizer, "--end-token", options.end_token, "--threads", str(options.threads)],
                           check=True, capture_output=True)
            ours.append(megabytes / (time.perf_counter() - start))
        start = time.perf_counter()
        library.encode_batch(parts, add_special_tokens=False)
        theirs.append(megabytes / (time.perf_counter() - start))
    print(f"{options.tokenizer}, {options.text}, {options.threads} threads: {statistics.median(ours):.1f} and "
          f"{statistics.median(theirs):.2f} MB/s; {version_of_peer(options.tokenizer)}")


def main() -> None:
    """Runs the pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tokenizer", type=Path, help="a tokenizer.json or a SentencePiece model")
    parser.add_argument("text", type=Path, help="a text file")
    parser.add_argument("--bench", type=Path, default=Path("build/release/tokenizer_bench"))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of both, which work as users start them")
    parser.add_argument("--farstep", type=Path, default=Path("build/release/farstep"))
    parser.add_argument("--end-token", default="<|end|>", help="for --threads: what ends a document")
    options = parser.parse_args()
    if options.threads:
        compete_on_threads(options)
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    encode = python_encoder(options.tokenizer)
    text = options.text.read_bytes().decode()
    megabytes = len(text.encode()) / 1e6
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        ids = Path(folder, "ids")
        for _ in range(options.pairs):
            printed = subprocess.run([options.bench, options.tokenizer, options.text, "--ids", ids], check=True,
                                     capture_output=True, text=True).stdout
            ours.append(float(re.search(r"in pieces: ([0-9.]+) MB/s", printed).group(1)))
            start = time.process_time()
            for begin in range(0, len(text), PART_CHARACTERS):
                encode(text[begin:begin + PART_CHARACTERS])
            theirs.append(megabytes / (time.process_time() - start))
        equal = memoryview(ids.read_bytes()).cast("i").tolist() == encode(text)
    print(f"{options.tokenizer}, {options.text}: {statistics.median(ours):.1f} and "
          f"{statistics.median(theirs):.2f} MB/s; ids {'equal' if equal else 'DIFFER'}; "
          f"{version_of_peer(options.tokenizer)}")


if __name__ == "__main__":
    main()
