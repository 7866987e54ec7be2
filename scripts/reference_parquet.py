#!/usr/bin/env python3
"""Writes tests/golden/parquet/: small Parquet files of the kinds that people have, and their texts.

Needs `pip install pyarrow==26.0.1`.
"""

import argparse
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "parquet"


def sample_texts() -> list[str | None]:
    """Short and long ones, without text, and nulls."""
    random.seed(7)
    words = ["Привет", "мир", "hello", "world", "世界", "😀", "e\u0301", "a\nb", "tab\t", "\"quoted\"", "x"]
    texts = ["", None, "a", "long " * 1500, None, None, "zero \x00 byte"]
    for number in range(113):
        texts.append(" ".join(random.choice(words) for _ in range(number % 23)) + f" {number % 9}")
    return texts


def write(name: str, array: pa.Array, nullable: bool = True, **options: object):
    """One file with the texts between two other columns."""
    others = pa.array(range(len(array)))
    fields = [pa.field("id", pa.int64()), pa.field("text", array.type, nullable), pa.field("score", pa.int64())]
    table = pa.Table.from_arrays([others, array, others], schema=pa.schema(fields))
    pq.write_table(table, GOLDEN / f"{name}.parquet", store_schema=name != "binary", **options)


def main():
    """Writes all files."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    GOLDEN.mkdir(parents=True, exist_ok=True)
    texts = sample_texts()
    strings = pa.array(texts, pa.string())
    for codec in ("snappy", "gzip", "zstd", "brotli", "lz4"):
        write(codec, strings, compression=codec, row_group_size=50)
    write("pages", strings, compression="zstd", row_group_size=70, data_page_size=500, write_batch_size=7,
          use_dictionary=False, write_page_checksum=True)
    write("version2", pa.array(texts, pa.large_string()), compression="zstd", data_page_version="2.0", row_group_size=33)
    write("delta", strings, compression="zstd", use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})
    write("binary", pa.array([None if text is None else text.encode() for text in texts], pa.binary()),
          compression="zstd")
    write("dictionary", strings.dictionary_encode(), compression="zstd", row_group_size=40)
    write("required", pa.array([text or "" for text in texts], pa.string()), nullable=False, compression="zstd")
    write("empty", pa.array([], pa.string()))
    write("bytes", pa.array([b"good", b"bad \xff", b"good"], pa.binary()))
    kinds = pa.table({"number": [1], "list": [["a"]], "outer": [{"inner": "a"}], "map": pa.array(
        [[("a", "b")]], pa.map_(pa.string(), pa.string())), "day": pa.array([1], pa.date32()), "title": ["a"], "body": ["b"]})
    pq.write_table(kinds, GOLDEN / "kinds.parquet")
    (GOLDEN / "texts.json").write_text(json.dumps(texts, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
