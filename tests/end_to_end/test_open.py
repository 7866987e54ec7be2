"""Runs that sites may join whose names the run file does not have: real processes."""

import signal
import unittest

from cluster import Cluster, ClusterTest, by_event, wait_until

# Until they are stopped: how fast the machine is decides nothing.
RUN = {"sites": [], "min_sites": 2, "max_sites": 3, "outer": {"rounds": 100_000},
       "plan": {"base_steps": 20, "base_batch": 1}, "evaluate": {"every_rounds": 0},
       "deadlines": {"pause_seconds": 60}}
PACED = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.02}}]}


class Open(ClusterTest):
    """Two sites begin a run that names nobody, and others come and go."""

    def assert_together(self, cluster: Cluster, names: list[str]):
        """These have worked, and all hold one theta_global in each round."""
        hashes = {}
        for name in names:
            rounds = by_event(cluster, name, "round")
            self.assertTrue(any(event["averaging_weight"] > 0 for event in rounds), name)
            for event in rounds:
                self.assertEqual(hashes.setdefault(event["round"], event["theta_hash"]),
                                 event["theta_hash"], (name, event["round"]))
        self.assert_no_step_twice(cluster)

    def come_and_go(self, run: dict, **options):
        cluster = Cluster(self.folder, 4, RUN | run, dict.fromkeys(range(4), PACED), **options)
        started = {}

        def start(name: str):
            started[name] = self.start_site(cluster, name, "--resume=auto")

        start("node1")
        wait_until(lambda: "1 of any name" in cluster.log("node1"), 120, "the wait for another")
        start("node3")
        self.wait_for_rounds(cluster, 1, "node3")
        start("node2")
        self.wait_for_rounds(cluster, 2, "node2")
        self.assertEqual(by_event(cluster, "node2", "view")[0]["members"],
                         ["node1", "node2", "node3"])
        # There is no place for a fourth before one has left.
        start("node4")
        self.assert_end(cluster, {"node4": started["node4"]}, 4)
        self.assertIn("its max_sites", cluster.log("node4"))
        started["node3"].send_signal(signal.SIGTERM)
        self.assert_end(cluster, {"node3": started.pop("node3")}, 130)
        start("node4")
        self.wait_for_rounds(cluster, 2, "node4")
        for process in started.values():
            process.send_signal(signal.SIGINT)
        self.assert_end(cluster, started, 130)
        self.assert_together(cluster, cluster.names)
        report = cluster.report()
        self.assertEqual([site["site"] for site in report["presence"]], cluster.names)
        return cluster

    def test_sites_that_nobody_names_come_and_go(self):
        """The plan is of those that are there."""
        self.come_and_go({})

    def test_they_come_and_go_with_keys_and_a_plan(self):
        """A key is what lets a site in, and the planner learns how fast it is."""
        self.come_and_go({"plan": RUN["plan"] | {"policy": "hybrid"}}, secure=True)


if __name__ == "__main__":
    unittest.main()
