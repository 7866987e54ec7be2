"""Gloo's ring as the exchange: a baseline that trains as the direct exchange does."""

import signal
import unittest

from cluster import WATCHFUL, Cluster, ClusterTest, by_event, validation_losses

RING = {"sync": {"exchange": "ring"}}


class Ring(ClusterTest):
    """Real processes over the loopback interface."""

    def cluster(self, name: str, num_sites: int, run: dict, sites: dict | None = None) -> Cluster:
        """A run in a folder of its own."""
        # Gloo makes plain connections of its own.
        return Cluster(self.make_folder(name), num_sites, run, sites, secure=False)

    def test_sites_learn_as_with_the_direct_exchange(self):
        """One hash a round, the direct exchange's losses, and bytes as the kernel counts them."""
        for num_sites in (2, 3):
            runs = [self.cluster(f"{kind}-{num_sites}", num_sites, {"sync": {"exchange": kind}})
                    for kind in ("ring", "direct")]
            for cluster in runs:
                self.assert_success(cluster.launch())
            ring, direct = runs
            self.assert_one_theta(ring)
            for rounds, loss in validation_losses(direct).items():
                self.assertAlmostEqual(validation_losses(ring)[rounds], loss, delta=1e-4)
            parameters = by_event(ring, "node1", "run")[0]["parameters"]
            payload = 3 * 2 * (num_sites - 1) / num_sites * 4 * parameters
            for site in ring.names:
                sent = sum(event["wan_bytes_sent"] for event in by_event(ring, site, "round"))
                self.assertAlmostEqual(sent, payload, delta=0.1 * payload)

    def test_a_lost_site_ends_the_others(self):
        """Killed, its connections break; frozen, the control plane misses it."""
        run = RING | {"outer": {"rounds": 100_000}, "plan": {"base_steps": 20, "base_batch": 1},
                      "deadlines": WATCHFUL}
        for stop in (signal.SIGKILL, signal.SIGSTOP):
            cluster = self.cluster(stop.name, 2, run)
            started = self.start_all(cluster)
            self.wait_for_rounds(cluster, 2, "node2")
            started["node2"].send_signal(stop)
            self.assert_end(cluster, {"node1": started["node1"]}, 4)
            self.assertIn("node2", cluster.log("node1"))
            self.assertEqual(by_event(cluster, "node1", "end")[-1]["outcome"], "peer_lost")
            self.end_processes()

    def test_emulated_links_are_refused(self):
        """A ring's connections cannot be slowed down: the site says so before it trains."""
        links = {"network": {"emulate": {"delay_seconds": 0.01}}}
        cluster = self.cluster("emulated", 2, RING, {0: links, 1: links})
        result = cluster.launch()
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn("network.emulate", result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
