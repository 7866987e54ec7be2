"""Checkpoints that are written behind training: whatever ends a site in the middle of one, what it
resumes from leads to the bits of a run that nothing disturbed."""

import os
import signal
import time
import unittest
from pathlib import Path

from cluster import Cluster, ClusterTest, by_event
from test_resume import trajectory

# Large enough that a write takes longer than a look at the folder.
RUN = {"outer": {"rounds": 4}, "plan": {"base_steps": 6, "base_batch": 2}, "checkpoint": {"keep": 2},
       "model": {"hidden": 256, "intermediate": 512}}


def partial_folders(cluster: Cluster, name: str) -> list[Path]:
    """Checkpoints that the site is writing, or was when it ended."""
    return sorted((cluster.output / name / "checkpoints").glob("round-*.partial"))


class BackgroundCheckpoints(ClusterTest):
    """Real processes, stopped while a checkpoint is being written."""

    def cluster(self, name: str, run: dict | None = None) -> Cluster:
        """The same run in a folder of its own."""
        folder = self.folder / name
        folder.mkdir()
        return Cluster(folder, 2, {**RUN, **(run or {})})

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

        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            name = frozen()
            if name:
                return name
        raise AssertionError("no checkpoint was seen while it was written")

    def assert_same_trajectory(self, cluster: Cluster, whole: Cluster):
        """Every step's loss and every round's hash are the same bits."""
        for name in cluster.names:
            self.assertEqual(trajectory(cluster, name), trajectory(whole, name))
            self.assertEqual(len(trajectory(whole, name)), 4 * 6 + 4)

    def test_killed_while_a_checkpoint_is_written(self):
        """SIGKILL in the middle of a write: the round before is resumed, to the same bits."""
        whole = self.cluster("whole")
        self.assert_success(whole.launch())
        for rounds in (1, 2):
            cluster = self.cluster(f"killed{rounds}")
            started = self.start_all(cluster)
            victim = self.freeze_in_a_write(cluster, started, rounds)
            for process in started.values():
                process.send_signal(signal.SIGKILL)
                process.wait(timeout=10)
            self.assertTrue(partial_folders(cluster, victim))
            self.assert_success(cluster.launch("--resume"))
            self.assert_same_trajectory(cluster, whole)
            self.assertFalse(partial_folders(cluster, victim))

    def test_one_site_is_killed_while_it_writes(self):
        """The survivor has a checkpoint in common with it, however far it has come itself."""
        whole = self.cluster("whole")
        self.assert_success(whole.launch())
        # The lost site may be the one that hosts the coordinator.
        cluster = self.cluster("lost", {"deadlines": {"heartbeat_seconds": 0.3,
                                                      "lost_after_seconds": 1.5,
                                                      "coordinator_lost_after_seconds": 1.5}})
        started = self.start_all(cluster)
        victim = self.freeze_in_a_write(cluster, started, 2)
        (other,) = (name for name in started if name != victim)
        # It goes on as far as it can without the other, and notices its loss.
        self.assertEqual(started[other].wait(timeout=60), 4, cluster.log(other))
        started[victim].send_signal(signal.SIGKILL)
        started[victim].wait(timeout=10)
        self.assert_success(cluster.launch("--resume"))
        self.assert_same_trajectory(cluster, whole)

    def test_interrupted_while_a_checkpoint_is_written(self):
        """SIGTERM in the middle of a write: that one, and one of the moment if it differs, are whole."""
        whole = self.cluster("whole")
        self.assert_success(whole.launch())
        cluster = self.cluster("interrupted")
        started = self.start_all(cluster)
        victim = self.freeze_in_a_write(cluster, started, 1)
        for process in started.values():
            process.send_signal(signal.SIGTERM)
        started[victim].send_signal(signal.SIGCONT)
        for name, process in started.items():
            self.assertEqual(process.wait(timeout=30), 130, cluster.log(name))
            self.assertFalse(partial_folders(cluster, name))
        self.assert_success(cluster.launch("--resume"))
        self.assert_same_trajectory(cluster, whole)

    def test_a_disk_that_fails_ends_the_run(self):
        """What cannot be written ends the site with exit code 3, in the round after at the latest."""
        cluster = self.cluster("full")
        blocked = cluster.output / "node1" / "checkpoints" / "round-00002.partial"
        blocked.parent.mkdir(parents=True)
        blocked.write_text("in the way\n")
        started = self.start_all(cluster)
        self.assertEqual(started["node1"].wait(timeout=60), 3, cluster.log("node1"))
        self.assertEqual(started["node2"].wait(timeout=60), 4, cluster.log("node2"))
        self.assertIn(blocked.name, cluster.log("node1"))
        self.assertLessEqual(max(event["round"] for event in by_event(cluster, "node1", "step")), 3)
        self.assertEqual([event["round"] for event in by_event(cluster, "node1", "checkpoint")],
                         [0, 1])
        os.remove(blocked)
        self.assert_success(cluster.launch("--resume"))

    def test_every_checkpoint_is_recorded_once(self):
        """One record a checkpoint, in order, the last before the end."""
        cluster = self.cluster("recorded")
        self.assert_success(cluster.launch())
        for name in cluster.names:
            recorded = by_event(cluster, name, "checkpoint")
            self.assertEqual([event["round"] for event in recorded], [0, 1, 2, 3, 4])
            kinds = [event["event"] for event in cluster.events(name)]
            self.assertEqual(kinds[-1], "end")
            kept = sorted(path.name for path in (cluster.output / name / "checkpoints").iterdir())
            self.assertEqual(kept, ["round-00003", "round-00004"])


if __name__ == "__main__":
    unittest.main()
