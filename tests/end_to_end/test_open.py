"""Runs that sites may join whose names the run file does not have: real processes."""

import signal
import unittest

from cluster import Cluster, ClusterTest, by_event, wait_until

RUN = {"sites": [], "min_sites": 2, "max_sites": 3, "outer": {"rounds": 60},
       "plan": {"base_steps": 60, "base_batch": 1}, "deadlines": {"pause_seconds": 60}}


class Open(ClusterTest):
    """Two sites begin a run that names nobody, and others come and go."""

    def assert_together(self, cluster: Cluster, names: list[str]):
        """These have worked, and all hold one theta_global in each round and after the last."""
        hashes = {}
        for name in names:
            rounds = by_event(cluster, name, "round")
            self.assertTrue(any(event["averaging_weight"] > 0 for event in rounds), name)
            for event in rounds:
                self.assertEqual(hashes.setdefault(event["round"], event["theta_hash"]),
                                 event["theta_hash"], (name, event["round"]))
        self.assertIn(cluster.run["outer"]["rounds"], hashes)

    def come_and_go(self, run: dict, **options):
        cluster = Cluster(self.folder, 4, RUN | run, **options)
        started = {}

        def start(name: str):
            started[name] = cluster.start(name, "--resume=auto")
            self.processes.append(started[name])

        start("node1")
        wait_until(lambda: "1 of any name" in cluster.log("node1"), 120, "the wait for another")
        start("node3")
        wait_until(lambda: by_event(cluster, "node3", "round"), 120, "a round of two")
        start("node2")
        wait_until(lambda: len(by_event(cluster, "node2", "round")) >= 2, 120, "rounds of three")
        self.assertEqual(by_event(cluster, "node2", "view")[0]["members"],
                         ["node1", "node2", "node3"])
        # There is no place for a fourth before one has left.
        start("node4")
        self.assertEqual(started["node4"].wait(timeout=120), 4, cluster.log("node4"))
        self.assertIn("its max_sites", cluster.log("node4"))
        started["node3"].send_signal(signal.SIGTERM)
        self.assertEqual(started["node3"].wait(timeout=120), 130, cluster.log("node3"))
        start("node4")
        for name in ("node1", "node2", "node4"):
            self.assertEqual(started[name].wait(timeout=120), 0, cluster.log(name))
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
