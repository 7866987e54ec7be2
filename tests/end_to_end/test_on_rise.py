"""A validation loss that rises: the run goes back to the weights before, once, or it stops."""

import shutil
import unittest

from cluster import Cluster, ClusterTest, by_event, farstep, merge, validation_losses

RUN = {"outer": {"rounds": 3, "learning_rate": 0.7, "mean_rounds": 0}, "plan": {"base_steps": 6, "base_batch": 2},
       "evaluate": {"every_rounds": 1, "on_rise": "go_back"}, "checkpoint": {"keep": 20}}
# An outer step so long leaves every valley, and no value of the model is infinite.
TOO_FAR = 60
SLOW = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.05}}]}


class OnRise(ClusterTest):
    """Two and three sites, and an outer learning rate that spoils the model."""

    def weights(self, cluster: Cluster, name: str, rounds: int) -> bytes:
        """theta_global as the site's checkpoint has it."""
        return (cluster.output / name / "checkpoints" / f"round-{rounds:05d}" / "model.safetensors").read_bytes()

    def test_all_sites_go_back_once_and_stop_at_the_second_rise(self):
        """Each with exit code 5; what they saved after going back are the old weights."""
        cluster = Cluster(self.folder, 2, merge(RUN, {"outer": {"rounds": 9, "learning_rate": TOO_FAR}}))
        self.assert_end(cluster, self.start_all(cluster), 5)
        losses = validation_losses(cluster)
        self.assertGreater(losses[1], losses[0] + 0.5)
        self.assertAlmostEqual(losses[2], losses[0], places=5)
        for name in cluster.names:
            rises = by_event(cluster, name, "rise")
            self.assertEqual([(rise["validated_round"], rise["round"], rise["back_to_round"], rise["stops"])
                              for rise in rises], [(1, 2, 0, False), (3, 4, None, True)])
            self.assertEqual(self.weights(cluster, name, 2), self.weights(cluster, name, 0))
            self.assertNotEqual(self.weights(cluster, name, 1), self.weights(cluster, name, 0))
            self.assertIn("though the run went back after the rise before", cluster.log(name))
            self.assertFalse((cluster.output / name / "checkpoints" / "round-00004").exists())
        report = farstep("report", cluster.output)
        self.assert_success(report)
        text = " ".join(report.stdout.split())
        self.assertIn("all sites went back to the weights after round 0", text)
        self.assertIn("the run stopped", text)

    def test_a_site_without_that_checkpoint_takes_the_others_state(self):
        """A round with too long an outer step, which ends the run: the resumed one finds the rise."""
        cluster = Cluster(self.folder, 3, merge(RUN, {"min_sites": 2}), dict.fromkeys(range(3), SLOW))
        self.assert_success(cluster.launch())
        self.assert_success(cluster.launch("--resume", "--set", "run.outer.rounds=4", "--set",
                                           f"run.outer.learning_rate={TOO_FAR}"))
        shutil.rmtree(cluster.output / "node2" / "checkpoints" / "round-00003")
        self.assert_success(cluster.launch("--resume", "--set", "run.outer.rounds=12"))
        losses = validation_losses(cluster)
        self.assertGreater(losses[4], losses[3] + 0.5)
        self.assertLess(losses[12], losses[3])
        for name in ("node1", "node3"):
            self.assertEqual([(rise["validated_round"], rise["round"], rise["back_to_round"])
                              for rise in by_event(cluster, name, "rise")], [(4, 5, 3)])
            self.assertEqual(self.weights(cluster, name, 5), self.weights(cluster, name, 3))
        log = (cluster.output / "node2" / "log.txt").read_text(encoding="utf-8")
        self.assertIn("of which this site has no whole checkpoint", log)
        self.assertIn("this site joins again", log)
        self.assertEqual(len({self.weights(cluster, name, 12) for name in cluster.names}), 1)


if __name__ == "__main__":
    unittest.main()
