"""A bit that flips in the memory of one site: real processes, and their memory written from outside."""

import json
import os
import signal
import struct
import unittest
from pathlib import Path

from cluster import PATIENCE_SECONDS, Cluster, ClusterTest, by_event, farstep, validation_losses, wait_until

# With residuals, which stay where they are from one sync to the next.
RUN = {"min_sites": 1, "outer": {"rounds": 8}, "plan": {"base_steps": 20, "base_batch": 2},
       "sync": {"codec": {"kind": "top_k", "error_feedback": True}},
       "checkpoint": {"keep": 20}, "deadlines": {"lost_after_seconds": 60, "transfer_stall_seconds": 120}}
PACED = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.02}}]}
PATTERN_VALUES = 16


def tensor(file: Path, name: str) -> bytes:
    """The bytes of a tensor in a safetensors file."""
    content = file.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    begin, end = json.loads(content[8:8 + length])[name]["data_offsets"]
    return content[8 + length + begin:8 + length + end]


def places_of(process: int, pattern: bytes) -> list[int]:
    """The addresses at which the process has these bytes in memory that it can write."""
    places = []
    with open(f"/proc/{process}/maps", encoding="ascii") as maps, open(f"/proc/{process}/mem", "rb") as memory:
        for line in maps:
            span, rights = line.split()[:2]
            begin, end = (int(address, 16) for address in span.split("-"))
            if not rights.startswith("rw"):
                continue
            memory.seek(begin)
            try:
                content = memory.read(end - begin)
            except OSError:  # a device's, or none that is there
                continue
            at = content.find(pattern)
            while at >= 0:
                places.append(begin + at)
                at = content.find(pattern, at + 1)
    return places


def is_stopped(process: int) -> bool:
    """Whether the process stands still: a busy machine lets it run on for a while."""
    return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "T"


class Outliers(ClusterTest):
    """One site's fault is left out, whatever it is, and the run goes on."""

    def break_memory(self, cluster: Cluster, process, site: str, value: float):
        """Writes a value into the residual of the site's deltas, in the middle of a round.

        The site stands still meanwhile, once the newest checkpoint has the residual that it holds.
        """
        folder = cluster.output / site / "checkpoints"
        rounds = len(by_event(cluster, site, "round"))
        while True:
            wait_until(lambda: len(by_event(cluster, site, "checkpoint")) > 0 and
                       len(by_event(cluster, site, "round")) > rounds, PATIENCE_SECONDS, "another round")
            rounds = len(by_event(cluster, site, "round"))
            self.wait_for_step(cluster, rounds + 1, 2, site)
            process.send_signal(signal.SIGSTOP)
            wait_until(lambda: is_stopped(process.pid), PATIENCE_SECONDS, "the process to stand still")
            last = by_event(cluster, site, "step")[-1]
            newest = folder / f"round-{rounds:05d}"
            if last["round"] == rounds + 1 and last["step"] < 15 and newest.exists():
                break
            process.send_signal(signal.SIGCONT)
        residual = tensor(next(file for file in newest.glob("*.safetensors") if b'"residual"' in
                               file.read_bytes()[:100_000]), "residual")
        # Values that stand once in it, and are not zeros.
        pattern = next(residual[at:at + 4 * PATTERN_VALUES] for at in range(4096, len(residual), 4)
                       if residual[at:at + 4 * PATTERN_VALUES].count(bytes(4)) == 0)
        places = places_of(process.pid, pattern)
        self.assertGreater(len(places), 0)
        with open(f"/proc/{process.pid}/mem", "r+b", buffering=0) as memory:
            for place in places:
                os.pwrite(memory.fileno(), struct.pack("<f", value), place)
        process.send_signal(signal.SIGCONT)
        return rounds + 1

    def assert_left_out(self, cluster: Cluster, broken: str, broken_round: int):
        """One delta of one site, and all sites say so and go on with one theta_global."""
        self.assert_one_theta(cluster)
        for name in cluster.names:
            found = by_event(cluster, name, "outlier")
            self.assertEqual([(event["round"], event["delta_of"], event["is_left_out"]) for event in found],
                             [(broken_round, broken, True)], name)
            self.assertIn("has a value of 1e+30, and its steps can make at most", found[0]["reason"])
            weights = [event["averaging_weight"] for event in by_event(cluster, name, "round")]
            equal = 1 / len(cluster.names)
            for number, weight in enumerate(weights, 1):
                expected = equal if number != broken_round else 0 if name == broken else 1 / (len(cluster.names) - 1)
                self.assertAlmostEqual(weight, expected, msg=(name, number))
        self.assertIn("begins anew from theta_global", cluster.log(broken))
        losses = validation_losses(cluster)
        self.assertLess(losses[max(losses)], losses[0])
        self.assertLess(max(losses.values()), losses[0] + 0.1)
        report = farstep("report", cluster.output)
        self.assert_success(report)
        self.assertIn(f"round {broken_round}: the delta of {broken} has a value of 1e+30", report.stdout)

    def test_a_flipped_bit_of_one_of_three_sites_spoils_nothing(self):
        """With keys or without, as the name is drawn."""
        cluster = Cluster(self.folder, 3, RUN, dict.fromkeys(range(3), PACED))
        started = self.start_all(cluster)
        broken_round = self.break_memory(cluster, started["node2"], "node2", 1e30)
        self.assert_end(cluster, started)
        self.assert_left_out(cluster, "node2", broken_round)

    def test_of_two_sites_the_host_may_be_the_broken_one(self):
        """The bound needs no other site."""
        cluster = Cluster(self.folder, 2, RUN, dict.fromkeys(range(2), PACED))
        started = self.start_all(cluster)
        broken_round = self.break_memory(cluster, started["node1"], "node1", 1e30)
        self.assert_end(cluster, started)
        self.assert_left_out(cluster, "node1", broken_round)

    def test_a_site_alone_ends_before_the_outer_step(self):
        """With 5, as nothing is left that could count; its checkpoint is from before."""
        cluster = Cluster(self.folder, 1, RUN, {0: PACED})
        started = self.start_all(cluster)
        self.break_memory(cluster, started["node1"], "node1", 1e30)
        self.assert_end(cluster, started, 5)
        self.assertIn("1 of 1 deltas are out of proportion: node1's has a value of 1e+30", cluster.log("node1"))
        self.start_site(cluster, "node1", "--resume=auto")
        self.assert_end(cluster, {"node1": self.processes[-1]})
        self.assertEqual(by_event(cluster, "node1", "end")[-1]["outcome"], "done")


if __name__ == "__main__":
    unittest.main()
