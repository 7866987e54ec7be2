"""A ring as the exchange: Gloo's own as a baseline, and with keys one over the encrypted links."""

import signal
import unittest

from cluster import WATCHFUL, Cluster, ClusterTest, by_event, merge, validation_losses

RING = {"sync": {"exchange": "ring"}}


class Ring(ClusterTest):
    """Real processes over the loopback interface."""

    def cluster(self, name: str, num_sites: int, run: dict, sites: dict | None = None) -> Cluster:
        """A run in a folder of its own."""
        return Cluster(self.make_folder(name), num_sites, run, sites)

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

    def test_with_keys_it_follows_one_device_over_encrypted_links(self):
        """With the keys that `init` makes: data parallelism, one theta, and the bytes of each link."""
        rounds, batches = 20, {"node1": 4, "node2": 4, "node3": 8}
        common = {"outer": {"rounds": rounds}, "evaluate": {"every_rounds": rounds},
                  "checkpoint": {"every_rounds": rounds}}
        # Alone, a site that takes the plain mean of the models trains plainly.
        alone = self.cluster("alone", 1, merge(common, {"plan": {"base_steps": 1, "base_batch": 16},
                                                        "strategy": {"kind": "local_sgd"}}))
        self.assert_success(alone.launch())
        cluster = Cluster(self.make_folder("keys"), 3, merge(common, {
            "sites": [{"name": name, "batch": batch} for name, batch in batches.items()],
            "plan": {"base_steps": 1}, "strategy": {"kind": "ring_all_reduce", "bucket_bytes": 20000}}),
            secure=True)
        started = self.start_all(cluster)
        for name, process in started.items():
            self.assertEqual(process.wait(timeout=120), 0, cluster.log(name))
            self.assertIn("sync.exchange ring: with keys", cluster.log(name))
        hashes = [[event["theta_hash"] for event in by_event(cluster, name, "round")]
                  for name in cluster.names]
        self.assertEqual(len(set(hashes[0])), rounds)
        self.assertEqual(hashes, 3 * [hashes[0]])
        for number, step in enumerate(by_event(alone, "node1", "step")):
            loss = sum(batch * by_event(cluster, name, "step")[number]["loss"]
                       for name, batch in batches.items()) / 16
            self.assertAlmostEqual(loss, step["loss"], delta=1e-5)
        # A link to each peer; only the next site gets values, as each byte of the gradient goes round.
        parameters = by_event(cluster, "node1", "run")[0]["parameters"]
        payload = rounds * 2 * 2 / 3 * 4 * parameters
        for place, name in enumerate(cluster.names):
            after = cluster.names[(place + 1) % 3]
            sent = {peer: sum(link["bytes_sent"] for link in by_event(cluster, name, "link")
                              if link["peer"] == peer) for peer in cluster.names}
            self.assertAlmostEqual(sent.pop(after), payload, delta=0.01 * payload)
            self.assertLess(sum(sent.values()), 0.01 * payload)

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
        """The connections of Gloo's ring cannot be slowed down: the site says so before it trains."""
        links = {"network": {"emulate": {"delay_seconds": 0.01}}}
        cluster = Cluster(self.folder, 2, RING, {0: links, 1: links}, secure=False)
        result = cluster.launch()
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn("network.emulate", result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
