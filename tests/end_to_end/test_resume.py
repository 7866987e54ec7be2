"""A run that was interrupted ends as if it had not been."""

import shutil
import signal
import subprocess
import unittest
from pathlib import Path

from cluster import (FARSTEP, PATIENCE_SECONDS, Cluster, ClusterTest, farstep, merge, trajectory)

RUN = {"outer": {"rounds": 4}, "plan": {"base_steps": 6, "base_batch": 2}}
# Slow enough that a signal arrives inside a round.
SLOW = {index: {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.08}}]}
        for index in range(2)}


class Resume(ClusterTest):
    """Each case against an uninterrupted run, bit by bit."""

    def cluster(self, name: str, run: dict | None = None) -> Cluster:
        """The same run in a folder of its own."""
        return Cluster(self.make_folder(name), 2, merge(RUN, run or {}), SLOW)

    def uninterrupted(self, run: dict | None = None) -> Cluster:
        """The run that nothing disturbs."""
        cluster = self.cluster("whole", run)
        self.assert_success(cluster.launch())
        return cluster

    def test_interrupted_in_mid_round(self):
        """Ctrl-C at every site inside round 2, then --resume; with Muon as inner optimizer."""
        run = {"inner": {"optimizer": "muon"}}
        cluster = self.cluster("interrupted", run)
        self.interrupt_after(cluster, 2, 2)
        self.assert_success(cluster.launch("--resume"))
        self.assert_same_trajectory(cluster, self.uninterrupted(run))

    def test_whatever_stops_it_it_goes_on(self):
        """Ctrl-C at `farstep launch` and at each site, a kill of all and of one, a damaged checkpoint.

        One command starts and resumes, as a service gives it. All leads to the bits of a run without
        any of it; the report has the outages, and the work that was done again.
        """
        run = {"outer": {"rounds": 6}}
        cluster = self.cluster("disturbed", run)
        self.interrupt_launcher(cluster)
        self.kill(cluster, 3, *cluster.names)
        self.kill(cluster, 4, "node2")
        self.interrupt_after(cluster, 5, 2, "--resume")
        damaged = self.damage_newest(cluster)
        started = self.start_all(cluster, "--resume=auto")
        self.assert_end(cluster, started)
        for name in cluster.names:
            self.assertIn("resumed from", cluster.log(name))
        self.assertIn(damaged.name, cluster.log("node1"))
        self.assertIn("warn", cluster.log("node1"))
        whole = self.uninterrupted(run)
        self.assert_same_trajectory(cluster, whole)
        self.assert_wall_time_adds_up(cluster)
        self.assertNotIn("lost to failures", farstep("report", whole.output).stdout)

    def interrupt_launcher(self, cluster: Cluster):
        """Ctrl-C at `farstep launch` in round 2: every site leaves a checkpoint, and launch says 130."""
        launcher = subprocess.Popen([str(FARSTEP), "launch", str(cluster.folder), "--resume=auto"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(launcher)
        self.wait_for_step(cluster, 2, 2)
        launcher.send_signal(signal.SIGINT)
        self.assertEqual(launcher.wait(timeout=PATIENCE_SECONDS), 130)
        for name in cluster.names:
            self.assertEqual(cluster.events(name)[-1]["outcome"], "interrupted")

    def kill(self, cluster: Cluster, round_number: int, *victims: str):
        """Starts all sites, and kills these in that round; the others end with exit code 4."""
        started = self.start_all(cluster, "--resume=auto")
        self.wait_for_step(cluster, round_number, 3)
        for name in victims:
            started[name].send_signal(signal.SIGKILL)
        for name, process in started.items():
            self.assert_end(cluster, {name: process}, -signal.SIGKILL if name in victims else 4)

    def damage_newest(self, cluster: Cluster) -> Path:
        """Flips a byte in the first site's newest checkpoint: all go back to the one before."""
        newest = sorted((cluster.output / "node1" / "checkpoints").iterdir())[-1]
        damaged = next(newest.glob("*.safetensors"))
        content = bytearray(damaged.read_bytes())
        content[len(content) // 2] ^= 1
        damaged.write_bytes(content)
        return damaged

    def assert_wall_time_adds_up(self, cluster: Cluster):
        """The report divides the time from first to last, outages and abandoned work included.

        Only after a stop on purpose does nothing count until the next start.
        """
        for site in cluster.report()["sites"]:
            events = cluster.events(site["site"])
            pairs = [(before, after) for before, after in zip(events, events[1:])
                     if before.get("outcome") != "interrupted"]
            wall = sum(after["time"] - before["time"] for before, after in pairs)
            self.assertAlmostEqual(site["wall_seconds"], wall, delta=0.001)
            self.assertAlmostEqual(site["wall_seconds"], delta=0.001, second=sum(
                site[part] for part in ("compute_seconds", "wait_seconds", "wan_seconds",
                                        "other_seconds", "lost_seconds", "unaccounted_seconds")))
            outages = sum(after["time"] - before["time"] for before, after in pairs
                          if after["event"] == "run")
            trained = sum(event["seconds"] for event in events if event["event"] == "step")
            self.assertGreater(outages, 0)
            self.assertGreater(trained, site["compute_seconds"])
            self.assertGreaterEqual(site["lost_seconds"] + 0.001,
                                    outages + trained - site["compute_seconds"])
        self.assertIn("lost to failures", farstep("report", cluster.output).stdout)

    def test_measured_products_are_kept(self):
        """A copy of a run that goes back to round 2 makes products as the run had measured."""
        run = {**RUN, "checkpoint": {"keep": 9}}
        sites = {index: {"cpu": {"products": "measure"}} for index in range(2)}
        whole, copy = (Cluster(folder, 2, run, sites)
                       for folder in map(self.make_folder, ("whole", "copy")))
        self.assert_success(whole.launch())
        shutil.copytree(whole.output, copy.output)
        for name in copy.names:
            (copy.output / name / "events.jsonl").unlink()
            for newer in ("round-00003", "round-00004"):
                shutil.rmtree(copy.output / name / "checkpoints" / newer)
        self.assert_success(copy.launch("--resume"))
        for name in copy.names:
            self.assertIn("as the checkpoint says", (copy.output / name / "log.txt").read_text())
            rounds = {key: value for key, value in trajectory(whole, name).items() if key[1] > 2}
            self.assertEqual(trajectory(copy, name), rounds)
            self.assertEqual(len(rounds), 2 * 6 + 2)

    def test_a_site_lost_before_its_first_checkpoint(self):
        """It begins anew beside the other's state of mid-round, and nothing else is lost."""
        whole, killed = self.uninterrupted(), self.cluster("killed")
        started = self.start_all(killed)
        self.wait_for_step(killed, 1, 1)
        started["node2"].send_signal(signal.SIGKILL)
        self.assert_end(killed, {"node1": started["node1"]}, 4)
        self.assertTrue(list((killed.output / "node1" / "checkpoints").glob("round-00000-*")))
        # The one of round 0 may have been complete already.
        shutil.rmtree(killed.output / "node2" / "checkpoints", ignore_errors=True)
        self.assert_success(killed.launch("--resume"))
        self.assertIn("begins anew", (killed.output / "node2" / "log.txt").read_text())
        self.assert_same_trajectory(killed, whole)

    def test_what_is_lost_is_taken_from_the_others(self):
        """A site without checkpoints begins as a newcomer; nothing to resume from is refused."""
        cluster = self.cluster("lost")
        rounds = ("--set", "run.outer.rounds=2")
        self.assert_refused(self.cluster("empty"), "checkpoint", "--resume")
        self.assert_success(cluster.launch("--resume=auto", "--set", "run.outer.rounds=1"))
        lost = cluster.output / "node2" / "checkpoints"
        shutil.rmtree(lost)
        self.assert_success(cluster.launch("--resume", *rounds))
        self.assertIn("asks for its state", (cluster.output / "node2" / "log.txt").read_text())
        results = {(cluster.output / name / "checkpoints" / "round-00002" / "model.safetensors").read_bytes()
                   for name in cluster.names}
        self.assertEqual(len(results), 1)
        for name in cluster.names:
            for manifest in (cluster.output / name / "checkpoints").glob("*/manifest.json"):
                manifest.unlink()
        self.assert_refused(cluster, "no site has a checkpoint", "--resume=auto", *rounds)

    def assert_refused(self, cluster: Cluster, message: str, *options: str):
        """The launched sites end with exit code 2 and this message."""
        refused = cluster.launch(*options)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn(message, refused.stdout + refused.stderr)


class Finished(ClusterTest):
    """A site that has all of its run, and is started again."""

    RUN = {"outer": {"rounds": 3}, "checkpoint": {"keep": 9}, "deadlines": {"join_seconds": 10}}
    LAST = "round-00003"

    def finished(self, sites: dict | None = None) -> Cluster:
        """A run of two sites that is over."""
        cluster = Cluster(self.folder, 2, self.RUN, sites, secure=False)
        self.end_all(cluster, "--resume=auto")
        return cluster

    def end_all(self, cluster: Cluster, *options: str):
        """Starts both sites; both end well."""
        self.assert_end(cluster, self.start_all(cluster, *options))

    def end_of(self, cluster: Cluster, name: str, *options: str) -> int:
        """Starts one site alone; returns its exit code."""
        return self.start_site(cluster, name, *options).wait(timeout=PATIENCE_SECONDS)

    def last_round(self, cluster: Cluster, name: str) -> int:
        """The newest round that the site has recorded."""
        return max(event["round"] for event in cluster.events(name) if event["event"] == "round")

    def test_each_site_of_a_finished_run_ends_at_once(self):
        """Without meeting anyone, though the coordinator's host is away; launch starts nothing.

        The folder of another run is refused: its checkpoints are neither this run's end nor its begin.
        """
        cluster = self.finished()
        events = {name: cluster.events(name) for name in cluster.names}
        for name in reversed(cluster.names):
            self.assertEqual(self.end_of(cluster, name, "--resume=auto"), 0, cluster.log(name))
            folder = cluster.output / name / "checkpoints" / self.LAST
            told = f"run 'test' is finished: round 3 of 3; the model is in {folder}; nothing to do"
            self.assertIn(told, cluster.log(name))
            self.assertIn(told, (cluster.output / name / "log.txt").read_text(encoding="utf-8"))
        launched = cluster.launch("--resume=auto")
        self.assert_success(launched)
        for name in cluster.names:
            self.assertIn(f"{name}: run 'test' is finished: round 3 of 3", launched.stderr)
            self.assertFalse((cluster.output / name / "console.txt").exists())
            self.assertEqual(cluster.events(name), events[name])
        # Sites that are told to resume meet, and see that nothing is left.
        self.assert_success(cluster.launch("--resume"))

        for option in ("--resume=auto", "--resume"):
            code = self.end_of(cluster, "node1", option, "--set", "run.name=next")
            self.assertEqual(code, 2, cluster.log("node1"))
            self.assertIn("has checkpoints of run 'test', and this site is to train run 'next'",
                          cluster.log("node1"))

    def test_a_site_that_was_behind_gets_the_rest_from_the_others_and_more_rounds_let_all_go_on(self):
        """Alone it ends with code 4; launch brings the others to it. --set gives the run more rounds."""
        cluster = self.finished()
        behind = cluster.output / "node2" / "checkpoints"
        shutil.rmtree(behind / self.LAST)
        self.assertEqual(self.end_of(cluster, "node1", "--resume=auto"), 0, cluster.log("node1"))
        self.assertEqual(self.end_of(cluster, "node2", "--resume=auto"), 4, cluster.log("node2"))
        self.assertNotIn("is finished", cluster.log("node2"))
        self.assert_success(cluster.launch("--resume=auto"))
        models = [(cluster.output / name / "checkpoints" / self.LAST / "model.safetensors").read_bytes()
                  for name in cluster.names]
        self.assertEqual(models[0], models[1])
        self.assert_success(cluster.launch("--resume=auto", "--set", "run.outer.rounds=4"))
        for name in cluster.names:
            self.assertEqual(self.last_round(cluster, name), 4)

    def test_a_site_without_a_run_file_asks_the_others_first(self):
        """They may have more rounds; if nobody comes, its checkpoint's own run counts."""
        cluster = self.finished({1: {"run": ""}})
        self.assertEqual(self.end_of(cluster, "node2", "--resume=auto"), 0, cluster.log("node2"))
        self.assertIn("looks for the others, as its config names no run file", cluster.log("node2"))
        self.assertIn("nothing to do: site node2 could not join within 10 s", cluster.log("node2"))
        host = self.start_site(cluster, "node1", "--resume=auto", "--set", "run.outer.rounds=4")
        self.assertEqual(self.end_of(cluster, "node2", "--resume=auto"), 0, cluster.log("node2"))
        self.assert_end(cluster, {"node1": host})
        self.assertEqual(self.last_round(cluster, "node2"), 4)


class OtherSites(ClusterTest):
    """A run goes on with other sites than its checkpoints are of."""

    RUN = {"outer": {"rounds": 3}, "plan": {"base_steps": 12},
           "sync": {"fragments": 2, "codec": {"kind": "int8"}}}

    def go_on(self, num_sites: int, rounds: int) -> Cluster:
        """Resumes with this number of sites, all of which have checkpoints; all end alike."""
        for config in self.folder.glob("node*.json"):
            config.unlink()
        run = {**self.RUN, "outer": {"rounds": rounds}}
        cluster = Cluster(self.folder, num_sites, run, SLOW)
        self.assert_success(cluster.launch("--resume"))
        trajectories = [trajectory(cluster, name) for name in cluster.names]
        self.assertEqual(len({found["round", rounds] for found in trajectories}), 1)
        return cluster

    def test_a_site_is_lost_for_good_and_another_comes(self):
        """Three sites, one killed in mid-round: two go on, from theta_global; then three again."""
        three = Cluster(self.folder, 3, self.RUN, SLOW)
        started = self.start_all(three)
        self.wait_for_step(three, 2, 1)
        started["node3"].send_signal(signal.SIGKILL)
        for name in ("node1", "node2"):
            self.assert_end(three, {name: started[name]}, 4)
        two = self.go_on(2, 3)
        for name in two.names:
            self.assertIn("round 2 begins anew", (two.output / name / "log.txt").read_text())
            resumed = [event for event in two.events(name) if event["event"] == "run"][-1]
            self.assertEqual((resumed["start_round"], resumed["start_step"]), (1, 0))
        shutil.rmtree(two.output / "node3")
        shutil.copytree(two.output / "node1" / "checkpoints",
                        two.output / "node3" / "checkpoints")
        self.go_on(3, 4)


if __name__ == "__main__":
    unittest.main()
