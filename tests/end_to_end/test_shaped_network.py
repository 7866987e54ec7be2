"""Runs over emulated links: they take the time of their bytes, and change nothing else."""

import unittest

from cluster import Cluster, ClusterTest, by_event
from measured import Figure, within_tries

RATE_BITS_PER_SECOND = 20e6
DELAY_SECONDS = 0.05
ROUNDS = 3


class ShapedNetwork(ClusterTest):
    """Two processes whose config says `network.emulate`."""

    def run_sites(self, name: str, network: dict) -> Cluster:
        """A finished run of two sites that sync about 2.1 MB after every two steps."""
        model = {"hidden": 128, "intermediate": 384, "layers": 2}
        run = {"model": model, "outer": {"rounds": ROUNDS}, "evaluate": {"every_rounds": 0},
               "plan": {"base_steps": 2, "base_batch": 1}}
        cluster = Cluster(self.make_folder(name), 2, run, {index: {"network": network} for index in range(2)})
        self.assert_success(cluster.launch())
        return cluster

    def wan_seconds(self, cluster: Cluster, name: str) -> list[float]:
        """The site's time on the WAN, a round each."""
        spans = [span for span in by_event(cluster, name, "span") if span["cause"] == "wan"]
        return [sum(span["seconds"] for span in spans if span["round"] == number)
                for number in range(1, ROUNDS + 1)]

    def test_a_round_takes_what_bytes_and_delay_imply(self):
        """At 20 Mbit/s and 50 ms each way; weights are those of the run without."""
        within_tries(self, self.times_of_rounds)

    def times_of_rounds(self) -> list[Figure]:
        """WAN time of every round for what its bytes imply; hashes are compared first."""
        plain = self.run_sites("plain", {})
        shaped = self.run_sites("shaped", {"emulate": {
            "rate_bits_per_second": RATE_BITS_PER_SECOND, "delay_seconds": DELAY_SECONDS}})
        self.assert_one_theta(shaped)
        self.assert_same_trajectory(shaped, plain)
        figures = []
        for name in shaped.names:
            for event, seconds, without in zip(by_event(shaped, name, "round"),
                                               self.wan_seconds(shaped, name),
                                               self.wan_seconds(plain, name), strict=True):
                sending = 8 * event["wan_bytes_sent"] / RATE_BITS_PER_SECOND
                what = f"{name} round {event['round']}, {event['wan_bytes_sent']} bytes"
                # The last byte arrives after all have left; the mean needs a second hop.
                figures += [Figure(f"{what}: seconds", seconds, sending + DELAY_SECONDS,
                                   1.3 * (sending + 2 * DELAY_SECONDS)),
                            Figure(f"{what}: seconds without emulation", without, at_most=seconds)]
        return figures


if __name__ == "__main__":
    unittest.main()
