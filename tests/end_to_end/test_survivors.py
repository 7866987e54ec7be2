"""Sites that go on when others are lost: real processes, killed, frozen and stopped."""

import os
import signal
import subprocess
import unittest
from pathlib import Path

from cluster import (FARSTEP, PATIENCE_SECONDS, UNENDING, WATCHFUL, Cluster, ClusterTest, break_connections,
                     by_event, validation_losses, wait_until)
from ports import port_of

RUN = {"min_sites": 1, "outer": {"rounds": 12},
       "plan": {"base_steps": 30, "base_batch": 1}}
# Rounds of 0.6 s, so that a round of theirs is under way when others are lost.
PACED = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.02}}]}


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

    def assert_went_on(self, cluster: Cluster, *survivors: str):
        """These, or all, did all rounds, in a later generation at last, and each step once."""
        self.assert_one_theta(cluster, *survivors)
        self.assert_no_step_twice(cluster, *survivors)
        for name in survivors or cluster.names:
            rounds = by_event(cluster, name, "round")
            self.assertEqual(len(by_event(cluster, name, "step")),
                             sum(event["local_steps"] for event in rounds))
            self.assertGreater(rounds[-1]["generation"], 1)
            self.assertEqual(by_event(cluster, name, "end")[-1]["outcome"], "done")

    def test_the_others_go_on_when_one_is_killed_then_frozen_then_stopped(self):
        """Until one of four sites is left, which ends the run alone."""
        cluster = Cluster(self.folder, 4, RUN | {"outer": {"rounds": 30}, "deadlines": WATCHFUL},
                          dict.fromkeys(range(4), PACED))
        started = self.start_all(cluster)
        lost = {"node2": signal.SIGKILL, "node3": signal.SIGSTOP, "node4": signal.SIGTERM}
        hashes = {}
        for generation, (victim, how) in enumerate(lost.items(), start=2):
            self.wait_for_rounds(cluster, len(by_event(cluster, "node1", "round")) + 3, victim)
            started[victim].send_signal(how)
            wait_until(lambda g=generation: f"generation {g} goes on" in cluster.log("node1"),
                       PATIENCE_SECONDS, f"the loss of {victim}")
        self.assert_end(cluster, {"node1": started["node1"]})
        self.assert_went_on(cluster, "node1")
        views = by_event(cluster, "node1", "view")
        self.assertEqual([view["lost"] for view in views], list(lost))
        for name in cluster.names:  # of a lost site, until its loss
            rounds = by_event(cluster, name, "round")
            self.assertGreaterEqual(len(rounds), 3)
            for event in rounds:
                first = hashes.setdefault(event["round"], event["theta_hash"])
                self.assertEqual(event["theta_hash"], first, (name, event["round"]))
        self.assert_no_step_twice(cluster)
        losses = validation_losses(cluster)
        self.assertLess(losses[30], losses[0])

    def test_a_launcher_lets_the_others_go_on(self):
        """Longer than it would wait for sites that have to end."""
        rounds = 20
        cluster = Cluster(self.folder, 3, RUN | {
            "outer": {"rounds": rounds}, "deadlines": {"checkpoint_seconds": 1, "leave_seconds": 1}},
            dict.fromkeys(range(3), PACED))
        launcher = subprocess.Popen([FARSTEP, "launch", self.folder], stderr=subprocess.PIPE)
        self.processes.append(launcher)
        self.wait_for_rounds(cluster, 2, "node2")
        os.kill(process_of(self.folder / "node2.json"), signal.SIGKILL)
        launcher.communicate(timeout=PATIENCE_SECONDS)
        self.assertNotEqual(launcher.returncode, 0)
        for name in ("node1", "node3"):
            events = by_event(cluster, name, "round")
            self.assertEqual(len(events), rounds)
            alone = [event for event in events if event["generation"] == 2]
            self.assertGreater(len(alone) * 0.6, 2 * (1 + 1), "they train longer than the two deadlines")
            self.assertEqual(by_event(cluster, name, "end")[-1]["outcome"], "done")

    def test_a_site_that_is_suddenly_slow_is_left_behind(self):
        """It lives and is heard of; the others wait for a round longer than usual, and go on."""
        slow = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {
            "times": 1, "changes": [{"step": 150, "times": 2000}]}}]}
        cluster = Cluster(self.folder, 3, RUN | {"min_sites": 2}, {2: slow})
        started = self.start_all(cluster)
        self.assert_end(cluster, {name: started[name] for name in ("node1", "node2")})
        self.assert_went_on(cluster, "node1", "node2")
        self.assertIn("site node3: it lives, but has not come to round ", cluster.log("node1"))

    def test_broken_connections_cost_no_site_and_no_step(self):
        """Of living sites, which are all needed or not, at any time of a round."""
        for run in ({"sync": {"fragments": 3, "delay_steps": 4}},
                    {"min_sites": 1, "sync": {"exchange": "ring"}}):
            with self.subTest(run=run):
                folder = self.make_folder(f"{len(list(self.folder.iterdir()))}")
                # What breaks is the plain connections; test_secure cuts those of a run with keys.
                cluster = Cluster(folder, 3, run | {"outer": {"rounds": 12}, "plan": RUN["plan"]},
                                  secure=False)
                started = self.start_all(cluster)
                port = port_of(cluster.endpoint)
                for rounds in (2, 5, 8):
                    self.wait_for_rounds(cluster, rounds, "node1")
                    self.assertGreater(break_connections(started["node2"], port), 0)
                self.assert_end(cluster, started)
                self.assert_went_on(cluster)
                views = by_event(cluster, "node1", "view")
                self.assertEqual({view["lost"] for view in views}, {None})
                self.assertTrue(all("broke" in view["reason"] for view in views), views)
                self.assertEqual(views[-1]["members"], cluster.names)

    def test_a_killed_host_that_is_started_again_is_not_waited_for(self):
        """The journal's next coordinator knows that the process before it has ended."""
        cluster = Cluster(self.folder, 3, RUN | {"min_sites": 2, "outer": {"rounds": 100_000},
                                                 "deadlines": UNENDING}, dict.fromkeys(range(3), PACED))
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 2)
        started["node1"].kill()
        started["node1"].wait()
        self.start_site(cluster, "node1", "--resume=auto")
        done = len(by_event(cluster, "node2", "round"))
        self.wait_for_rounds(cluster, done + 3, "node2", "node3")
        self.assertIn("site node1: its process has ended, and the coordinator in it was restarted",
                      cluster.log("node2"))
        begun = len(by_event(cluster, "node1", "round"))
        self.wait_for_rounds(cluster, begun + 2, "node1")
        self.assert_no_step_twice(cluster, "node2", "node3")

    def test_with_too_few_sites_the_run_ends(self):
        """The loss of a second of three sites is one too many."""
        cluster = Cluster(self.folder, 3, RUN | {"min_sites": 2, "outer": {"rounds": 1000}})
        started = self.start_all(cluster)
        for count, victim in enumerate(("node2", "node3"), start=1):
            self.wait_for_rounds(cluster, 3 * count, "node1")
            started[victim].kill()
            wait_until(lambda v=victim: f"site {v}" in cluster.log("node1"), PATIENCE_SECONDS, "the loss")
        self.assert_end(cluster, {"node1": started["node1"]}, 4)
        self.assertIn("node3", cluster.log("node1"))


if __name__ == "__main__":
    unittest.main()
