"""Fragments that are synced while training goes on: one theta_global, losses, resumes."""

import json
import signal
import unittest

from cluster import Cluster, ClusterTest, by_event, measures_time, validation_losses, wait_until
from test_resume import trajectory


def emulated(*step_seconds: float) -> dict:
    """Sites whose steps take as long as given."""
    return {index: {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": seconds}}]}
            for index, seconds in enumerate(step_seconds)}


class Streaming(ClusterTest):
    """Real runs with several fragments, delays and lossy codecs."""

    def cluster(self, name: str, run: dict, sites: dict) -> Cluster:
        """Two sites in a folder of their own."""
        folder = self.folder / name
        folder.mkdir()
        return Cluster(folder, 2, run | {"deadlines": {"lost_after_seconds": 4}}, sites)

    def assert_one_theta(self, cluster: Cluster, rounds: int):
        """Every round ends with one hash at all sites."""
        hashes = [[event["theta_hash"] for event in by_event(cluster, name, "round")]
                  for name in cluster.names]
        self.assertEqual(len(hashes[0]), rounds)
        self.assertEqual(hashes[0], hashes[1])

    def test_unequal_sites_learn_together(self):
        """Four fragments, five steps under way, int8, one site half as fast and given less to do."""
        run = {"outer": {"rounds": 4}, "plan": {"base_steps": 20, "base_batch": 4, "policy": "hybrid"},
               "sync": {"fragments": 4, "delay_steps": 5, "alpha": 0.25, "codec": {"kind": "int8"}}}
        cluster = self.cluster("unequal", run, emulated(0.03, 0.06))
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster, 4)
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

    @measures_time
    def test_a_delay_hides_the_wan(self):
        """Over slow links, most of what a sync takes passes while the sites train."""
        sites = emulated(0.08, 0.08)
        for site in sites.values():
            site["network"] = {"emulate": {"delay_seconds": 0.04, "rate_bits_per_second": 5e6}}
        reports = {}
        for delay in (0, 4):
            run = {"plan": {"base_steps": 20, "base_batch": 2},
                   "sync": {"fragments": 4, "delay_steps": delay}}
            cluster = self.cluster(f"delay-{delay}", run, sites)
            self.assert_success(cluster.launch())
            self.assert_one_theta(cluster, 3)
            reports[delay] = cluster.report()["sites"]
        for exposed, hidden in zip(reports[0], reports[4]):
            self.assertLess(exposed["hidden_wan_seconds"], 0.2 * exposed["wan_seconds"])
            self.assertGreater(hidden["hidden_wan_seconds"], 3 * hidden["wan_seconds"])

    def test_interrupted_in_mid_round(self):
        """Ctrl-C at all sites again and again, then --resume: the bits of a run without any."""
        run = {"outer": {"rounds": 7}, "plan": {"base_steps": 12, "base_batch": 2},
               "sync": {"fragments": 3, "delay_steps": 2, "alpha": 0.25, "codec": {"kind": "int8"}}}
        sites = emulated(0.06, 0.07)
        cluster = self.cluster("interrupted", run, sites)
        options: list[str] = []
        for round_number, step in ((1, 2), (3, 4), (5, 7)):
            started = self.start_all(cluster, *options)
            wait_until(lambda place=(round_number, step): any(
                (event["round"], event["step"]) >= place
                for event in by_event(cluster, "node2", "step")), 60, "the step to be done")
            for process in started.values():
                process.send_signal(signal.SIGINT)
            for name, process in started.items():
                self.assertEqual(process.wait(timeout=30), 130, cluster.log(name))
            options = ["--resume"]
        self.assert_success(cluster.launch("--resume"))
        self.assert_as_whole(cluster, run, sites, 7 * 12 + 7)

    def assert_as_whole(self, cluster: Cluster, run: dict, sites: dict, entries: int):
        """Every step's loss and every round's hash are those of an undisturbed run."""
        whole = self.cluster("whole", run, sites)
        self.assert_success(whole.launch())
        self.assert_one_theta(whole, run["outer"]["rounds"])
        for name in cluster.names:
            self.assertEqual(trajectory(cluster, name), trajectory(whole, name))
            self.assertEqual(len(trajectory(whole, name)), entries)

    def test_peer_killed_while_a_fragment_is_under_way(self):
        """The other ends with exit code 4, keeps the delta that it sent, and can go on with it."""
        run = {"outer": {"rounds": 2}, "plan": {"base_steps": 8, "base_batch": 2},
               "sync": {"fragments": 2, "delay_steps": 3}, "checkpoint": {"every_rounds": 1}}
        sites = emulated(0.1, 0.5)
        cluster = self.cluster("killed", run, sites)
        started = self.start_all(cluster)
        wait_until(lambda: len(by_event(cluster, "node1", "step")) >= 2, 60, "the first delta")
        self.assertEqual(by_event(cluster, "node2", "step"), [])
        started["node2"].send_signal(signal.SIGKILL)
        self.assertEqual(started["node1"].wait(timeout=15), 4, cluster.log("node1"))
        self.assertIn("node2", cluster.log("node1"))
        newest = sorted((cluster.output / "node1" / "checkpoints").iterdir())[-1]
        progress = json.loads((newest / "state.json").read_text(encoding="utf-8"))["progress"]
        self.assertEqual(progress["strategy"]["sent"]["work"]["steps"], 1)
        self.assert_success(cluster.launch("--resume"))
        self.assert_as_whole(cluster, run, sites, 2 * 8 + 2)


if __name__ == "__main__":
    unittest.main()
