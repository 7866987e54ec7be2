"""Eager updates: a whole round's exchange behind the next one, with one theta_global all the same."""

import signal
import unittest

from cluster import Cluster, ClusterTest, by_event, measures_time, validation_losses, wait_until
from test_resume import trajectory

STEP_SECONDS = 0.06
# A sync of the model takes about half a second over it.
LINK = {"emulate": {"rate_bits_per_second": 4e6, "delay_seconds": 0.04}}


class Eager(ClusterTest):
    """Two real processes over slow links."""

    def cluster(self, name: str, rounds: int, plan: dict | None = None,
                step_seconds: tuple[float, float] = (STEP_SECONDS, STEP_SECONDS)) -> Cluster:
        """The run in a folder of its own."""
        folder = self.folder / name
        folder.mkdir()
        sites = {index: {"devices": [{"kind": "cpu", "threads": 1,
                                      "emulate": {"step_seconds": seconds}}], "network": LINK}
                 for index, seconds in enumerate(step_seconds)}
        run = {"outer": {"rounds": rounds}, "plan": {"base_steps": 15, "base_batch": 2} | (plan or {}),
               "strategy": {"kind": "eager_updates"}, "deadlines": {"lost_after_seconds": 4}}
        return Cluster(folder, 2, run, sites)

    def assert_one_theta(self, cluster: Cluster, rounds: int):
        """Every round ends with one hash at all sites, and every delta has counted once."""
        hashes = [[event["theta_hash"] for event in by_event(cluster, name, "round")]
                  for name in cluster.names]
        self.assertEqual(len(hashes[0]), rounds)
        self.assertEqual(len(set(hashes[0])), rounds)
        self.assertEqual(hashes[0], hashes[1])

    @measures_time
    def test_a_whole_round_hides_the_wan(self):
        """Only the last round's exchange is waited for; the sites learn as others do."""
        cluster = self.cluster("eager", 5)
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster, 5)
        losses = validation_losses(cluster)
        self.assertEqual(losses[1], losses[0])  # of a theta_global without any delta
        self.assertLess(losses[5], losses[0] - 0.3)
        for name in cluster.names:
            rounds = by_event(cluster, name, "round")
            self.assertEqual([event["averaging_weight"] for event in rounds], [0] + 4 * [0.5])
            syncs = by_event(cluster, name, "sync")
            self.assertEqual([event["round"] for event in syncs], [1, 2, 3, 4, 5])
            for event in syncs[:-1]:
                self.assertLess(event["exposed_wan_seconds"], 0.1 * event["wan_seconds"])
            self.assertGreater(syncs[-1]["exposed_wan_seconds"], 0.9 * syncs[-1]["wan_seconds"])
            self.assertEqual(rounds[0]["wan_bytes_sent"], 0)
            self.assertEqual(sum(event["bytes_sent"] for event in syncs),
                             sum(event["wan_bytes_sent"] for event in rounds))

    @measures_time
    def test_the_plan_follows_a_round_later(self):
        """A site half as fast is given less after its first four steps; what a round shows counts a round later."""
        cluster = self.cluster("planned", 4, {"policy": "hybrid"}, (0.03, 0.06))
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster, 4)
        steps = [[event["local_steps"] for event in by_event(cluster, name, "plan")]
                 for name in cluster.names]
        self.assertEqual([fast == slow for fast, slow in zip(*steps)], [True, False, False, False, False])

    def test_interrupted_and_killed(self):
        """Ctrl-C at all sites, then SIGKILL, then --resume: the bits of a run without any."""
        cluster = self.cluster("interrupted", 6)
        options: list[str] = []
        for place, stop in (((1, 4), signal.SIGINT), ((2, 3), signal.SIGINT),
                            ((4, 8), signal.SIGKILL), ((6, 12), signal.SIGINT)):
            started = self.start_all(cluster, *options)
            wait_until(lambda place=place: any((event["round"], event["step"]) >= place
                                               for event in by_event(cluster, "node2", "step")),
                       60, "the step to be done")
            for process in started.values():
                process.send_signal(stop)
            for name, process in started.items():
                self.assertEqual(process.wait(timeout=30), 130 if stop == signal.SIGINT else -9,
                                 cluster.log(name))
            options = ["--resume"]
        self.assert_success(cluster.launch("--resume"))
        self.assert_as_whole(cluster, 6)

    def test_a_lost_peer_costs_nothing(self):
        """One site is killed while a delta is under way; the other keeps what it has, and both go on."""
        cluster = self.cluster("lost", 4)
        started = self.start_all(cluster)
        wait_until(lambda: any((event["round"], event["step"]) >= (3, 2)
                               for event in by_event(cluster, "node1", "step")), 60, "round 3")
        started["node2"].send_signal(signal.SIGKILL)
        self.assertEqual(started["node1"].wait(timeout=20), 4, cluster.log("node1"))
        self.assertIn("node2", cluster.log("node1"))
        self.assert_success(cluster.launch("--resume"))
        self.assert_as_whole(cluster, 4)

    def assert_as_whole(self, cluster: Cluster, rounds: int):
        """Every step's loss and every round's hash are those of an undisturbed run."""
        whole = self.cluster("whole", rounds)
        self.assert_success(whole.launch())
        self.assert_one_theta(whole, rounds)
        for name in cluster.names:
            self.assertEqual(trajectory(cluster, name), trajectory(whole, name))
            self.assertEqual(len(trajectory(whole, name)), rounds * 15 + rounds)


if __name__ == "__main__":
    unittest.main()
