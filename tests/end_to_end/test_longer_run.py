"""A run that is made longer: its learning rate rises again only where the run file says so."""

import unittest

from cluster import Cluster, ClusterTest, by_event, farstep, merge

# The warm-up is in rounds, so that it does not depend on the run's length. wsd decays in the second half.
WSD = {"schedule": "wsd", "warmup_rounds": 0.5, "decay_fraction": 0.5}
RUN = {"outer": {"rounds": 4}, "plan": {"base_steps": 4, "base_batch": 2}, "checkpoint": {"keep": 2}}
# Slow enough that a signal arrives inside a round.
SLOW = {index: {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.08}}]}
        for index in range(2)}
LONGER = ("--set", "run.outer.rounds=6")


class LongerRun(ClusterTest):
    """The same run, with four rounds and then six."""

    def cluster(self, name: str, run: dict, sites: dict[int, dict] | None = None) -> Cluster:
        """Two sites in a folder of their own."""
        return Cluster(self.make_folder(name), 2, merge(RUN, run), sites)

    def log_of(self, cluster: Cluster, name: str) -> str:
        """The site's log, of all its processes."""
        return (cluster.output / name / "log.txt").read_text(encoding="utf-8")

    def rates(self, cluster: Cluster, name: str) -> list[float]:
        """The learning rates of a site by step; what was redone replaces what was abandoned."""
        found = {(event["round"], event["step"]): event["learning_rate"]
                 for event in by_event(cluster, name, "step")}
        return [rate for _, rate in sorted(found.items())]

    def planned_long(self, run: dict) -> Cluster:
        """The run that had six rounds from the start."""
        whole = self.cluster("whole", merge(run, {"outer": {"rounds": 6}}))
        self.assert_success(whole.launch())
        return whole

    def test_a_rate_that_has_fallen_stays_and_the_run_says_so(self):
        """Also with wsd, whose decay is over."""
        for schedule in ("cosine", "wsd"):
            cluster = self.cluster(schedule, {"inner": {"schedule": schedule}})
            self.assert_success(cluster.launch())
            self.assert_success(cluster.launch("--resume=auto", *LONGER))
            for name in cluster.names:
                rates = self.rates(cluster, name)
                self.assertEqual(len(rates), 6 * 4)
                for rate in rates[4 * 4:]:
                    self.assertAlmostEqual(rate, 0.0003, delta=1e-9)
                self.assertIn("the learning rate's schedule ends after round 4", self.log_of(cluster, name))
            self.assertIn("schedule ends after round 4",
                          " ".join(farstep("report", cluster.output).stdout.split()))

    def test_a_restart_rises_from_the_last_rate(self):
        """By a warm-up, without a jump, and the two sites alike."""
        run = {"inner": {"extension": "restart", "warmup_rounds": 1}}
        cluster = self.cluster("restart", run)
        self.assert_success(cluster.launch())
        self.assert_success(cluster.launch("--resume", *LONGER))
        rates = self.rates(cluster, "node1")
        self.assertEqual(rates, self.rates(cluster, "node2"))
        for step, rate in enumerate(rates[4 * 4:5 * 4]):
            self.assertAlmostEqual(rate, 0.0003 + 0.0027 * step / 4, delta=1e-9)
        self.assertAlmostEqual(rates[5 * 4], 0.003, delta=1e-9)
        self.assertLess(rates[-1], 0.002)
        self.assertIn("inner.extension restart", self.log_of(cluster, "node2"))

    def test_wsd_that_has_not_decayed_is_the_longer_run_bit_by_bit(self):
        """Interrupted in the middle of round 2, before the decay."""
        run = {"inner": WSD}
        cluster = self.cluster("interrupted", run, SLOW)
        self.interrupt_after(cluster, 2, 1)
        self.assert_success(cluster.launch("--resume", *LONGER))
        self.assert_same_trajectory(cluster, self.planned_long(run))
        self.assertIn("ends after round 6 instead of 4", self.log_of(cluster, "node1"))

    def test_wsd_that_has_decayed_goes_on_from_before_the_decay(self):
        """The checkpoint of round 2 is still there; what came of the decay is set aside."""
        run = {"inner": WSD, "checkpoint": {"every_rounds": 3}}
        cluster = self.cluster("decayed", run)
        self.assert_success(cluster.launch())
        refused = cluster.launch("--resume", "--from-round=1", *LONGER)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("has no whole checkpoint of round 1", refused.stderr)
        self.assert_success(cluster.launch("--resume", "--from-round=2", *LONGER))
        self.assert_same_trajectory(cluster, self.planned_long(run))
        for name in cluster.names:
            kept = {folder.name for folder in (cluster.output / name / "checkpoints").iterdir()}
            self.assertIn("round-00004.left", kept)

    def test_sites_that_were_told_different_rounds_lose_nothing(self):
        """Both end with the remedy, and every checkpoint stays."""
        cluster = self.cluster("apart", {})
        self.assert_success(cluster.launch())
        before = {name: sorted(path.name for path in (cluster.output / name / "checkpoints").iterdir())
                  for name in cluster.names}
        started = {"node1": self.start_site(cluster, "node1", "--resume", "--from-round=3", *LONGER),
                   "node2": self.start_site(cluster, "node2", "--resume", *LONGER)}
        self.assert_end(cluster, started, 2)
        self.assertIn("this site goes back to round 3, and node2 does not", cluster.log("node1"))
        self.assertIn("give all sites the same round", cluster.log("node2"))
        for name in cluster.names:
            after = sorted(path.name for path in (cluster.output / name / "checkpoints").iterdir())
            self.assertEqual(after, before[name])

    def test_a_round_without_resume_is_refused(self):
        """Before any process starts."""
        cluster = self.cluster("alone", {})
        refused = cluster.launch("--from-round=2")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--from-round", refused.stderr)


if __name__ == "__main__":
    unittest.main()
