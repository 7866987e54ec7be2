"""Runs of every kind against their recorded bits: a change that should not change training does not.

Every site computes with AVX2 and Farstep's own products, so that the bits do not follow from which
instructions a processor has; they were recorded on AMD's Zen 4. After a change that is meant to change training, record anew:

  FARSTEP_BINARY=build/release/farstep FARSTEP_TEST_DATA=build/release/end_to_end_data \\
      python3 tests/end_to_end/test_reference_runs.py --record
"""

import hashlib
import json
import sys
import tempfile
import unittest
from pathlib import Path

from cluster import DATA, REPOSITORY, Cluster, ClusterTest, by_event, merge, plain_if_ring

GOLDEN = REPOSITORY / "tests" / "golden" / "reference_runs.json"
RUN = {"inner": {"compute": "fp32"}, "outer": {"mean_rounds": 0}, "plan": {"base_steps": 6}}
CPU = {"cpu": {"instructions": "avx2", "products": "avx2"}}
SLICE = {"kind": "cpu", "threads": 1}
UNEQUAL = {"sites": [{"name": "node1", "local_steps": 9, "batch": 2},
                     {"name": "node2", "local_steps": 6, "batch": 4},
                     {"name": "node3", "local_steps": 4, "batch": 6}]}
AVERAGING = ("uniform", "tokens", "batch", "fednova", "tokens_squared_per_step")

# Name: number of sites, run, sites.
CASES: dict[str, tuple[int, dict, dict]] = {
    "one site": (1, {}, {}),
    "direct": (3, {}, {}),
    "to the mean at last": (3, {"outer": {"mean_rounds": 1}}, {}),
    "five sites": (5, {}, {}),
    "ring": (3, {"sync": {"exchange": "ring"}}, {}),
    "parameter server": (3, {"sync": {"exchange": "parameter_server", "servers": ["node2"]}}, {}),
    "partition by layer": (3, {"sync": {"partition": "layer"}}, {}),
    "fragments, delay and alpha": (
        2, {"sync": {"fragments": 4, "delay_steps": 1, "alpha": 0.5}, "plan": {"base_steps": 12}}, {}),
    "fragments and delay, int4": (
        2, {"sync": {"fragments": 4, "delay_steps": 1, "codec": {"kind": "int4"}},
            "plan": {"base_steps": 12}}, {}),
    "eager": (2, {"strategy": {"kind": "eager_updates"}}, {}),
    "bf16 products": (2, {"inner": {"compute": "bf16"}}, {}),
    # Two slices that emulate one speed, so that the shares of a batch stay the same.
    "two devices": (2, {"plan": {"micro_batch": 1}}, {0: {"devices": 2 * [
        SLICE | {"emulate": {"sequence_seconds": 0.25}}]}}),
    "two threads": (2, {}, {index: {"devices": [SLICE | {"threads": 2}]} for index in range(2)}),
} | {
    f"codec {kind}": (3, {"sync": {"codec": {"kind": kind}}}, {})
    for kind in ("fp16", "bf16", "int8", "int4", "int2", "top_k")
} | {
    "codec int2, fine at last": (3, {"sync": {"codec": {"kind": "int2"}, "fine_rounds": 1}}, {}),
} | {
    f"unequal work, {rule}": (3, UNEQUAL | {"outer": {"averaging": rule}}, {}) for rule in AVERAGING
}
INTERRUPTED = "fragments, delay and alpha"


def dataset() -> str:
    """What the recorded bits depend on besides Farstep: SentencePiece makes the tokens."""
    digest = hashlib.sha256()
    for shard in sorted(DATA.glob("*.tokens")):
        digest.update(shard.read_bytes())
    return digest.hexdigest()


def make(folder: Path, case: str, more_sites: dict | None = None) -> Cluster:
    """The run of a case in a folder of its own."""
    num_sites, run, sites = CASES[case]
    folder = folder / case.replace(" ", "-").replace(",", "")
    folder.mkdir()
    every = {index: merge(merge(CPU, sites.get(index, {})), more_sites or {})
             for index in range(num_sites)}
    return Cluster(folder, num_sites, merge(RUN, run), every, plain_if_ring(run))


def outcome(cluster: Cluster) -> dict:
    """What must stay: every round's hash, losses, weights of the averaging, bytes, and tokens."""
    names = cluster.names
    rounds = {name: {event["round"]: event for event in by_event(cluster, name, "round")}
              for name in names}
    evaluations = {name: {event["round"]: event["loss_sum"]
                          for event in by_event(cluster, name, "evaluation")} for name in names}
    return {"theta_hash": [[rounds[name][number]["theta_hash"] for name in names]
                           for number in rounds[names[0]]],
            "loss_sum": [[evaluations[name][number] for name in names]
                         for number in evaluations[names[0]]],
            "averaging_weight": [[event["averaging_weight"] for event in rounds[name].values()]
                                 for name in names],
            "wan_bytes_sent": [[event["wan_bytes_sent"] for event in rounds[name].values()]
                               for name in names],
            "tokens": [sum(event["tokens"] for event in rounds[name].values()) for name in names]}


class ReferenceRuns(ClusterTest):
    """Each case's outcome is the recorded one."""

    def setUp(self):
        super().setUp()
        self.recorded = json.loads(GOLDEN.read_text(encoding="utf-8"))
        if self.recorded["dataset"] != dataset():
            self.skipTest("this SentencePiece makes other tokens than were recorded")

    def assert_recorded(self, cases):
        """Runs the cases and compares."""
        for case in cases:
            with self.subTest(case=case):
                cluster = make(self.folder, case)
                self.assert_success(cluster.launch())
                self.assertEqual(outcome(cluster), self.recorded["runs"][case])

    def test_exchanges(self):
        """Direct, ring, by a server, by layers, and of fragments."""
        self.assert_recorded(case for case in CASES
                             if "codec" not in case and "unequal" not in case)

    def test_codecs(self):
        """Every codec."""
        self.assert_recorded(case for case in CASES if "codec" in case)

    def test_averaging_rules(self):
        """Every rule, with unequal steps and batches."""
        self.assert_recorded(case for case in CASES if "unequal" in case)

    def test_interrupted(self):
        """Stopped in mid-round, with a fragment under way perhaps, and resumed."""
        slow = {"devices": [SLICE | {"emulate": {"step_seconds": 0.05}}]}
        cluster = make(self.folder, INTERRUPTED, slow)
        self.interrupt_after(cluster, 2, 5)
        self.assert_success(cluster.launch("--resume"))
        wanted = self.recorded["runs"][INTERRUPTED]
        found = outcome(cluster)
        for what in ("theta_hash", "loss_sum", "averaging_weight", "tokens"):
            self.assertEqual(found[what], wanted[what], what)


def record() -> None:
    """Writes the golden file: every case once."""
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            cluster = make(Path(folder), case)
            result = cluster.launch()
            if result.returncode != 0:
                sys.exit(f"{case}: {result.stdout}{result.stderr}")
            runs[case] = outcome(cluster)
    GOLDEN.write_text(json.dumps({"dataset": dataset(), "runs": runs}, indent=1) + "\n",
                      encoding="utf-8")


if __name__ == "__main__":
    if "--record" in sys.argv:
        record()
    else:
        unittest.main()
