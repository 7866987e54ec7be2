"""Sites that go on when others are lost: real processes, killed, frozen and stopped."""

import os
import signal
import subprocess
import unittest
from pathlib import Path

from cluster import (FARSTEP, SECURE, Cluster, ClusterTest, break_connections, by_event,
                     validation_losses, wait_until)

RUN = {"min_sites": 1, "outer": {"rounds": 12},
       "plan": {"base_steps": 30, "base_batch": 1}}


def process_of(config: Path) -> int:
    """The process that trains with this config."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = entry.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if b"train" in arguments and os.fsencode(config) in arguments:
            return int(entry.parent.name)
    raise AssertionError(f"no process trains with {config}")


class Survivors(ClusterTest):
    """Every loss leaves the others with one theta_global, and with all of their own steps."""

    def lose_after(self, rounds: int, how: signal.Signals, run: dict, num_sites: int = 3,
                   victim: str = "node2") -> Cluster:
        """Starts a run, ends the victim after some rounds, and waits for the others."""
        folder = self.folder / f"{how.name}-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        cluster = Cluster(folder, num_sites, RUN | run)
        started = self.start_all(cluster)
        wait_until(lambda: len(by_event(cluster, victim, "round")) >= rounds, 60, "some rounds")
        started[victim].send_signal(how)
        for name in cluster.names:
            if name != victim:
                self.assertEqual(started[name].wait(timeout=120), 0, cluster.log(name))
        started[victim].kill()
        started[victim].wait(timeout=10)
        return cluster

    def assert_went_on(self, cluster: Cluster, victim: str = "node2"):
        """The others did all rounds and steps, with equal hashes, in a later generation."""
        survivors = [name for name in cluster.names if name != victim]
        rounds = {name: by_event(cluster, name, "round") for name in survivors}
        hashes = {name: [event["theta_hash"] for event in events]
                  for name, events in rounds.items()}
        for name in survivors:
            self.assertEqual(hashes[name], hashes[survivors[0]])
            self.assertEqual(len(hashes[name]), cluster.run["outer"]["rounds"])
            # Nobody stepped back: each step was done once.
            steps = [(event["round"], event["step"]) for event in by_event(cluster, name, "step")]
            self.assertEqual(len(steps), len(set(steps)))
            self.assertEqual(len(steps), sum(event["local_steps"] for event in rounds[name]))
            self.assertGreater(rounds[name][-1]["generation"], 1)
            self.assertEqual(by_event(cluster, name, "end")[-1]["outcome"], "done")

    def test_the_others_go_on_when_one_is_killed_frozen_or_stopped(self):
        """Three sites, of which one goes at any time of a round."""
        for how in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            cluster = self.lose_after(3, how, {})
            self.assert_went_on(cluster)
            losses = validation_losses(cluster)
            self.assertLess(losses[12], losses[0])

    def test_a_delta_on_its_way_is_exchanged_among_the_others(self):
        """With fragments and a delay, and with eager updates, a sync is nearly always under way."""
        for run in ({"sync": {"fragments": 3, "delay_steps": 4}},
                    {"strategy": {"kind": "eager_updates"}},
                    {"sync": {"exchange": "parameter_server", "servers": ["node2"]}},
                    {"sync": {"exchange": "ring"}},
                    {"sync": {"codec": {"kind": "int8"}}}):
            if SECURE and run.get("sync", {}).get("exchange") == "ring":
                continue  # it makes connections of its own
            with self.subTest(run=run):
                self.assert_went_on(self.lose_after(3, signal.SIGKILL, run))

    def test_a_launcher_lets_the_others_go_on(self):
        """Longer than it would wait for sites that have to end."""
        cluster = Cluster(self.folder, 3, RUN | {
            "outer": {"rounds": 150}, "plan": {"base_steps": 100, "base_batch": 1},
            "deadlines": {"checkpoint_seconds": 1, "leave_seconds": 1}})
        launcher = subprocess.Popen([FARSTEP, "launch", self.folder], stderr=subprocess.PIPE)
        self.processes.append(launcher)
        wait_until(lambda: len(by_event(cluster, "node2", "round")) >= 2, 60, "two rounds")
        os.kill(process_of(self.folder / "node2.json"), signal.SIGKILL)
        launcher.communicate(timeout=150)
        self.assertNotEqual(launcher.returncode, 0)
        for name in ("node1", "node3"):
            self.assertEqual(len(by_event(cluster, name, "round")), 150)
            self.assertEqual(by_event(cluster, name, "end")[-1]["outcome"], "done")

    def test_a_site_goes_on_alone(self):
        """Of two sites one is left, and it ends the run."""
        self.assert_went_on(self.lose_after(3, signal.SIGKILL, {}, num_sites=2))

    def test_a_site_that_is_suddenly_slow_is_left_behind(self):
        """It lives and is heard of; the others wait for a round longer than usual, and go on."""
        slow = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {
            "times": 1, "changes": [{"step": 150, "times": 2000}]}}]}
        cluster = Cluster(self.folder, 3, RUN | {"min_sites": 2}, {2: slow})
        started = self.start_all(cluster)
        for name in ("node1", "node2"):
            self.assertEqual(started[name].wait(timeout=120), 0, cluster.log(name))
        self.assert_went_on(cluster, victim="node3")
        self.assertIn("site node3: it lives, but has not come to round ", cluster.log("node1"))

    def test_broken_connections_cost_no_site_and_no_step(self):
        """Of living sites, which may all be needed, at any time of a round."""
        for run in ({}, {"min_sites": 1, "sync": {"fragments": 3, "delay_steps": 4}},
                    {"sync": {"exchange": "ring"}}):
            if SECURE and run.get("sync", {}).get("exchange") == "ring":
                continue  # it makes connections of its own
            with self.subTest(run=run):
                folder = self.folder / f"{len(list(self.folder.iterdir()))}"
                folder.mkdir()
                cluster = Cluster(folder, 3, run | {"outer": {"rounds": 12}, "plan": RUN["plan"]})
                started = self.start_all(cluster)
                port = int(cluster.endpoint.rpartition(":")[2])
                for rounds in (2, 5, 8):
                    wait_until(lambda r=rounds: len(by_event(cluster, "node1", "round")) >= r, 60,
                               "some rounds")
                    self.assertGreater(break_connections(started["node2"], port), 0)
                for name in cluster.names:
                    self.assertEqual(started[name].wait(timeout=120), 0, cluster.log(name))
                self.assert_went_on(cluster, victim="nobody")
                views = by_event(cluster, "node1", "view")
                self.assertEqual({view["lost"] for view in views}, {None})
                self.assertTrue(all("broke" in view["reason"] for view in views), views)
                self.assertEqual(views[-1]["members"], cluster.names)

    def test_with_too_few_sites_the_run_ends(self):
        """The loss of a second of three sites is one too many."""
        cluster = Cluster(self.folder, 3, RUN | {"min_sites": 2, "outer": {"rounds": 1000}})
        started = self.start_all(cluster)
        for count, victim in enumerate(("node2", "node3"), start=1):
            wait_until(lambda c=count: len(by_event(cluster, "node1", "round")) >= 3 * c, 60,
                       "some rounds")
            started[victim].kill()
            wait_until(lambda v=victim: f"site {v}" in cluster.log("node1"), 30, "the loss")
        self.assertEqual(started["node1"].wait(timeout=30), 4, cluster.log("node1"))
        self.assertIn("node3", cluster.log("node1"))


if __name__ == "__main__":
    unittest.main()
