"""Runs whose sites train on several folders of tokens, by weight."""

import unittest

from cluster import DATA, REPOSITORY, Cluster, ClusterTest, farstep, trajectory, validation_losses

RUN = {"outer": {"rounds": 4}, "plan": {"base_steps": 6, "base_batch": 2}}
# Slow enough that a signal arrives inside a round.
SLOW = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.08}}]}


class Mixture(ClusterTest):
    """Two datasets of one tokenizer: all novels, and one of them."""

    def make_sources(self) -> list[dict]:
        """The second one is much smaller than its weight."""
        novel = sorted((REPOSITORY / ".deps/corpus/austen").glob("*.txt"))[0]
        small = self.folder / "novel"
        made = farstep("tokenize", novel, "--output", small, "--tokenizer", DATA)
        self.assertEqual(made.returncode, 0, made.stderr)
        return [{"folder": str(DATA), "weight": 0.3}, {"folder": str(small), "weight": 0.7}]

    def cluster(self, name: str, sources: list[list[dict]], run: dict | None = None) -> Cluster:
        """Two sites with these sources."""
        return Cluster(self.make_folder(name), 2, RUN | (run or {}), {
            index: SLOW | {"data": "", "mixture": mixture} for index, mixture in enumerate(sources)})

    def test_an_interrupted_mixture_resumes(self):
        """Bit by bit, with validation of the mixture; one folder alone gives another run."""
        sources = self.make_sources()
        whole = self.cluster("whole", [sources] * 2)
        self.assert_success(whole.launch())
        losses = validation_losses(whole)
        self.assertGreaterEqual(len(losses), 4)
        cluster = self.cluster("interrupted", [sources] * 2)
        self.interrupt_after(cluster, 2, 3)
        self.assert_success(cluster.launch("--resume"))
        self.assert_same_trajectory(cluster, whole)
        for rounds, loss in validation_losses(cluster).items():
            self.assertAlmostEqual(loss, losses[rounds], places=9)

    def test_a_mixture_of_one_folder_is_that_folder(self):
        """The same bits as with `data`, and others than with a second folder."""
        sources = self.make_sources()
        runs = [self.cluster("one", [sources[:1]] * 2), self.cluster("two", [sources] * 2)]
        runs.append(Cluster(self.make_folder("plain"), 2, RUN, {0: SLOW, 1: SLOW}))
        for run in runs:
            self.assert_success(run.launch())
        one, two, plain = (trajectory(run, "node1") for run in runs)
        self.assertEqual(one, plain)
        self.assertNotEqual(one, two)

    def test_sites_with_other_weights_do_not_train_together(self):
        """Nor in another order of the folders; and a sequential order takes one folder."""
        sources = self.make_sources()
        for name, other in (("weights", [sources[0] | {"weight": 0.5}, sources[1]]), ("order", sources[::-1])):
            with self.subTest(name):
                result = self.cluster(name, [sources, other]).launch()
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("data_digest", result.stdout + result.stderr)
        result = self.cluster("sequential", [sources] * 2,
                              {"data": {"sequence_length": 32, "order": "sequential"}}).launch()
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("sequential takes one folder", result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
