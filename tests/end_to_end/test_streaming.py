"""Fragments that are synced while training goes on: one theta_global, losses, resumes."""

import json
import signal
import unittest

from cluster import Cluster, ClusterTest, by_event, validation_losses
from measured import Figure, within_tries


def emulated(*step_seconds: float) -> dict:
    """Sites whose steps take as long as given."""
    return {index: {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": seconds}}]}
            for index, seconds in enumerate(step_seconds)}


class Streaming(ClusterTest):
    """Real runs with several fragments, delays and lossy codecs."""

    def cluster(self, name: str, run: dict, sites: dict) -> Cluster:
        """Two sites in a folder of their own."""
        return Cluster(self.make_folder(name), 2, run, sites)

    def test_unequal_sites_learn_together(self):
        """Four fragments, five steps under way, int8, one site half as fast and given less to do."""
        run = {"outer": {"rounds": 4}, "plan": {"base_steps": 20, "base_batch": 4, "policy": "hybrid"},
               "sync": {"fragments": 4, "delay_steps": 5, "alpha": 0.25, "codec": {"kind": "int8"}}}
        cluster = self.cluster("unequal", run, emulated(0.03, 0.06))
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster)
        losses = validation_losses(cluster)
        self.assertLess(losses[4], losses[0] - 0.3)
        self.assertLess(losses[4], losses[1])
        for name in cluster.names:
            syncs = [(event["round"], event["fragment"]) for event in by_event(cluster, name, "sync")]
            self.assertEqual(syncs, [(round_, fragment) for round_ in range(1, 5)
                                     for fragment in range(4)])
            sent = sum(event["bytes_sent"] for event in by_event(cluster, name, "sync"))
            rounds = by_event(cluster, name, "round")
            self.assertEqual(sent, sum(event["wan_bytes_sent"] for event in rounds))
        report = cluster.report()
        for site in report["sites"]:
            self.assertGreater(site["hidden_wan_seconds"], 0)

    def test_a_delay_hides_the_wan(self):
        """Over slow links, most of what a sync takes passes while the sites train."""
        within_tries(self, self.hidden_times)

    def hidden_times(self) -> list[Figure]:
        """What is hidden of the WAN's time for what is not, without a delay and with one."""
        sites = emulated(0.08, 0.08)
        for site in sites.values():
            site["network"] = {"emulate": {"delay_seconds": 0.04, "rate_bits_per_second": 5e6}}
        figures = []
        for delay, bounds in ((0, {"at_most": 0.2}), (4, {"at_least": 3})):
            run = {"plan": {"base_steps": 20, "base_batch": 2},
                   "sync": {"fragments": 4, "delay_steps": delay}}
            cluster = self.cluster(f"delay-{delay}", run, sites)
            self.assert_success(cluster.launch())
            self.assert_one_theta(cluster)
            figures += [Figure(f"hidden to exposed time of {site['site']}, delay {delay}",
                               site["hidden_wan_seconds"] / site["wan_seconds"], **bounds)
                        for site in cluster.report()["sites"]]
        return figures

    def test_interrupted_in_mid_round(self):
        """Ctrl-C at all sites again and again, then --resume: the bits of a run without any."""
        run = {"outer": {"rounds": 7}, "plan": {"base_steps": 12, "base_batch": 2},
               "sync": {"fragments": 3, "delay_steps": 2, "alpha": 0.25, "codec": {"kind": "int8"}}}
        sites = emulated(0.06, 0.07)
        cluster = self.cluster("interrupted", run, sites)
        options: list[str] = []
        for round_number, step in ((1, 2), (3, 4), (5, 7)):
            self.interrupt_after(cluster, round_number, step, *options)
            options = ["--resume"]
        self.assert_success(cluster.launch("--resume"))
        self.assert_as_whole(cluster, run, sites)

    def assert_as_whole(self, cluster: Cluster, run: dict, sites: dict):
        """Every step's loss and every round's hash are those of an undisturbed run."""
        whole = self.cluster("whole", run, sites)
        self.assert_success(whole.launch())
        self.assert_one_theta(whole)
        self.assert_same_trajectory(cluster, whole)

    def test_peer_killed_while_a_fragment_is_under_way(self):
        """The other ends with exit code 4, keeps the delta that it sent, and can go on with it."""
        run = {"outer": {"rounds": 2}, "plan": {"base_steps": 8, "base_batch": 2},
               "sync": {"fragments": 2, "delay_steps": 3}, "checkpoint": {"every_rounds": 1}}
        sites = emulated(0.1, 4)
        # Only the first step is so long that the other one can be seen to have sent its delta.
        sites[1]["devices"][0]["emulate"]["changes"] = [{"step": 2, "times": 0.025}]
        cluster = self.cluster("killed", run, sites)
        started = self.start_all(cluster)
        self.wait_for_step(cluster, 1, 2, "node1")
        started["node2"].send_signal(signal.SIGKILL)
        self.assertEqual(by_event(cluster, "node2", "step"), [])
        self.assert_end(cluster, {"node1": started["node1"]}, 4)
        self.assertIn("node2", cluster.log("node1"))
        newest = sorted((cluster.output / "node1" / "checkpoints").iterdir())[-1]
        progress = json.loads((newest / "state.json").read_text(encoding="utf-8"))["progress"]
        self.assertEqual(progress["strategy"]["sent"]["work"]["steps"], 1)
        self.assert_success(cluster.launch("--resume"))
        self.assert_as_whole(cluster, run, sites)


if __name__ == "__main__":
    unittest.main()
