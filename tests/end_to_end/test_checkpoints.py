"""Checkpoints that are written behind training: whatever ends a site in the middle of one, what it
resumes from leads to the bits of a run that nothing disturbed."""

import os
import signal
import time
import unittest
from pathlib import Path

from cluster import PATIENCE_SECONDS, WATCHFUL, Cluster, ClusterTest, by_event

# Large enough that a write takes longer than a look at the folder.
RUN = {"outer": {"rounds": 6}, "plan": {"base_steps": 6, "base_batch": 2}, "checkpoint": {"keep": 2},
       "model": {"hidden": 256, "intermediate": 512}}


def partial_folders(cluster: Cluster, name: str) -> list[Path]:
    """Checkpoints that the site is writing, or was when it ended."""
    return sorted((cluster.output / name / "checkpoints").glob("round-*.partial"))


class BackgroundCheckpoints(ClusterTest):
    """Real processes, stopped while a checkpoint is being written."""

    def cluster(self, name: str, run: dict | None = None) -> Cluster:
        """The same run in a folder of its own."""
        return Cluster(self.make_folder(name), 2, {**RUN, **(run or {})})

    def freeze_in_a_write(self, cluster: Cluster, started: dict, rounds: int) -> str:
        """Stops a site's process while it writes a checkpoint of that round or a later one; its name."""
        def frozen():
            for name, process in started.items():
                for partial in partial_folders(cluster, name):
                    if int(partial.name[len("round-"):][:5]) < rounds:
                        continue
                    process.send_signal(signal.SIGSTOP)
                    if partial.exists():
                        return name
                    process.send_signal(signal.SIGCONT)  # it was quicker
            self.assertTrue(any(process.poll() is None for process in started.values()))
            return None

        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            name = frozen()
            if name:
                return name
        raise AssertionError("no checkpoint was seen while it was written")

    def test_killed_and_interrupted_while_a_checkpoint_is_written(self):
        """In the middle of a write all are killed, or one alone, or all are asked to stop.

        What is resumed leads to the bits of a run that nothing disturbed. SIGTERM lets the checkpoint
        become whole, and one of the moment if it differs. The survivor of one has a checkpoint in
        common with it, however far it has come itself.
        """
        whole = self.cluster("whole")
        self.assert_success(whole.launch())
        self.assert_recorded_once(whole)
        # The lost site may be the one that hosts the coordinator.
        cluster = self.cluster("disturbed", {"deadlines": WATCHFUL | {"coordinator_lost_after_seconds": 6}})
        options: list[str] = []
        for rounds, how in ((1, "all killed"), (2, "all killed"), (3, "one killed"), (4, "interrupted")):
            started = self.start_all(cluster, *options)
            victim = self.freeze_in_a_write(cluster, started, rounds)
            self.end(cluster, started, victim, how)
            options = ["--resume"]
        self.assert_success(cluster.launch("--resume"))
        self.assert_same_trajectory(cluster, whole)
        for name in cluster.names:
            self.assertFalse(partial_folders(cluster, name))

    def end(self, cluster: Cluster, started: dict, victim: str, how: str):
        """Ends all sites, of which the victim is frozen in a write."""
        if how == "one killed":
            # The other goes on as far as it can without it, and notices its loss.
            self.assert_end(cluster, {name: each for name, each in started.items() if name != victim}, 4)
        for process in started.values():
            process.send_signal(signal.SIGTERM if how == "interrupted" else signal.SIGKILL)
        if how != "interrupted":
            for process in started.values():
                process.wait(timeout=PATIENCE_SECONDS)
            self.assertTrue(partial_folders(cluster, victim))
            return
        started[victim].send_signal(signal.SIGCONT)
        self.assert_end(cluster, started, 130)
        for name in cluster.names:
            self.assertFalse(partial_folders(cluster, name))

    def assert_recorded_once(self, cluster: Cluster):
        """One record a checkpoint, in order, the last before the end."""
        rounds = cluster.run["outer"]["rounds"]
        for name in cluster.names:
            recorded = by_event(cluster, name, "checkpoint")
            self.assertEqual([event["round"] for event in recorded], list(range(rounds + 1)))
            kinds = [event["event"] for event in cluster.events(name)]
            self.assertEqual(kinds[-1], "end")
            kept = sorted(path.name for path in (cluster.output / name / "checkpoints").iterdir())
            self.assertEqual(kept, [f"round-{rounds - 1:05}", f"round-{rounds:05}"])

    def test_a_disk_that_fails_ends_the_run(self):
        """What cannot be written ends the site with exit code 3, in the round after at the latest."""
        cluster = self.cluster("full")
        blocked = cluster.output / "node1" / "checkpoints" / "round-00002.partial"
        blocked.parent.mkdir(parents=True)
        blocked.write_text("in the way\n")
        started = self.start_all(cluster)
        self.assert_end(cluster, {"node1": started["node1"]}, 3)
        self.assert_end(cluster, {"node2": started["node2"]}, 4)
        self.assertIn(blocked.name, cluster.log("node1"))
        self.assertLessEqual(max(event["round"] for event in by_event(cluster, "node1", "step")), 3)
        self.assertEqual([event["round"] for event in by_event(cluster, "node1", "checkpoint")],
                         [0, 1])
        os.remove(blocked)
        self.assert_success(cluster.launch("--resume"))


if __name__ == "__main__":
    unittest.main()
