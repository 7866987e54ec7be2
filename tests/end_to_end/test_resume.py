"""A run that was interrupted ends as if it had not been."""

import shutil
import signal
import subprocess
import unittest
from pathlib import Path

from cluster import FARSTEP, Cluster, ClusterTest, farstep, merge, wait_until

RUN = {"outer": {"rounds": 4}, "plan": {"base_steps": 6, "base_batch": 2}}
# Slow enough that a signal arrives inside a round.
SLOW = {index: {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.08}}]}
        for index in range(2)}


def trajectory(cluster: Cluster, name: str) -> dict:
    """Loss of every step and hash of every round; what was redone replaces what was abandoned."""
    found = {}
    for event in cluster.events(name):
        if event["event"] == "step":
            found["step", event["round"], event["step"]] = (event["loss"], event["gradient_norm"],
                                                            event["learning_rate"])
        elif event["event"] == "round":
            found["round", event["round"]] = event["theta_hash"]
    return found


class Resume(ClusterTest):
    """Each case against an uninterrupted run, bit by bit."""

    def make_folder(self, name: str) -> Path:
        """A folder for one cluster."""
        folder = self.folder / name
        folder.mkdir()
        return folder

    def cluster(self, name: str, run: dict | None = None) -> Cluster:
        """The same run in a folder of its own."""
        return Cluster(self.make_folder(name), 2, merge(RUN, run or {}), SLOW)

    def uninterrupted(self, run: dict | None = None) -> Cluster:
        """The run that nothing disturbs."""
        cluster = self.cluster("whole", run)
        self.assert_success(cluster.launch())
        return cluster

    def assert_same_trajectory(self, cluster: Cluster, whole: Cluster):
        """Every step's loss and every round's hash are the same bits."""
        for name in cluster.names:
            self.assertEqual(trajectory(cluster, name), trajectory(whole, name))
            self.assertEqual(len(trajectory(whole, name)), 4 * 6 + 4)

    def test_interrupted_in_mid_round(self):
        """Ctrl-C at every site inside round 2, then --resume; with each inner optimizer."""
        for optimizer in ("adamw", "muon"):
            with self.subTest(optimizer=optimizer):
                self.take_new_folder()
                run = {"inner": {"optimizer": optimizer}}
                cluster = self.cluster("interrupted", run)
                self.interrupt_after(cluster, 2, 2)
                self.assert_success(cluster.launch("--resume"))
                self.assert_same_trajectory(cluster, self.uninterrupted(run))

    def test_launch_passes_an_interrupt_on(self):
        """Ctrl-C at `farstep launch`: every site leaves a checkpoint, and launch says 130."""
        cluster = self.cluster("launched")
        launcher = subprocess.Popen([str(FARSTEP), "launch", str(cluster.folder)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(launcher)
        wait_until(lambda: all(any(event["event"] == "step" and event["round"] == 2
                                   for event in cluster.events(name)) for name in cluster.names),
                   30, "round 2")
        launcher.send_signal(signal.SIGINT)
        self.assertEqual(launcher.wait(timeout=20), 130)
        for name in cluster.names:
            self.assertEqual(cluster.events(name)[-1]["outcome"], "interrupted")
        self.assert_success(cluster.launch("--resume"))
        self.assert_same_trajectory(cluster, self.uninterrupted())

    def test_killed(self):
        """SIGKILL at every site: what is lost is trained again, to the same bits."""
        cluster = self.cluster("killed")
        started = self.start_all(cluster)
        wait_until(lambda: any(event["event"] == "step" and event["round"] == 3
                               for event in cluster.events("node2")), 30, "round 3")
        for process in started.values():
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=10)
        self.assert_success(cluster.launch("--resume"))
        self.assert_same_trajectory(cluster, self.uninterrupted())

    def test_wall_time_adds_up_across_two_kills(self):
        """Two kills and two resumes: the report has the outages and the work that was done again."""
        cluster = self.cluster("killed")
        for killed_in in (2, 3):
            started = self.start_all(cluster, "--resume=auto")
            wait_until(lambda: all(any(event["event"] == "step" and event["round"] == killed_in
                                       and event["step"] >= 3 for event in cluster.events(name))
                                   for name in cluster.names), 60, f"round {killed_in}")
            for process in started.values():
                process.send_signal(signal.SIGKILL)
            for process in started.values():
                process.wait(timeout=10)
        self.assert_success(cluster.launch("--resume=auto"))
        for site in cluster.report()["sites"]:
            events = cluster.events(site["site"])
            wall = events[-1]["time"] - events[0]["time"]
            self.assertAlmostEqual(site["wall_seconds"], wall, delta=0.001)
            self.assertAlmostEqual(site["wall_seconds"], delta=0.001, second=sum(
                site[part] for part in ("compute_seconds", "wait_seconds", "wan_seconds",
                                        "other_seconds", "lost_seconds", "unaccounted_seconds")))
            outages = sum(after["time"] - before["time"]
                          for before, after in zip(events, events[1:]) if after["event"] == "run")
            trained = sum(event["seconds"] for event in events if event["event"] == "step")
            self.assertGreater(outages, 0)
            self.assertGreater(trained, site["compute_seconds"])
            self.assertGreaterEqual(site["lost_seconds"] + 0.001,
                                    outages + trained - site["compute_seconds"])
        text = farstep("report", cluster.output).stdout
        self.assertIn("lost to failures", text)
        whole = farstep("report", self.uninterrupted().output).stdout
        self.assertNotIn("lost to failures", whole)

    def test_damaged_newest_checkpoint(self):
        """A flipped byte in one site's newest checkpoint: all go back to the one before."""
        cluster = self.cluster("damaged")
        self.interrupt_after(cluster, 3, 2)
        newest = sorted((cluster.output / "node1" / "checkpoints").iterdir())[-1]
        damaged = next(newest.glob("*.safetensors"))
        content = bytearray(damaged.read_bytes())
        content[len(content) // 2] ^= 1
        damaged.write_bytes(content)
        started = self.start_all(cluster, "--resume")
        for name, process in started.items():
            self.assertEqual(process.wait(timeout=60), 0, cluster.log(name))
        self.assertIn(damaged.name, cluster.log("node1"))
        self.assertIn("warn", cluster.log("node1"))
        self.assert_same_trajectory(cluster, self.uninterrupted())

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
        wait_until(lambda: all(any(event["event"] == "step" for event in killed.events(name))
                               for name in killed.names), 30, "the first steps")
        started["node2"].send_signal(signal.SIGKILL)
        self.assertEqual(started["node1"].wait(timeout=20), 4, killed.log("node1"))
        self.assertTrue(list((killed.output / "node1" / "checkpoints").glob("round-00000-*")))
        # The one of round 0 may have been complete already.
        shutil.rmtree(killed.output / "node2" / "checkpoints", ignore_errors=True)
        self.assert_success(killed.launch("--resume"))
        self.assertIn("begins anew", (killed.output / "node2" / "log.txt").read_text())
        self.assert_same_trajectory(killed, whole)

    def test_a_site_without_the_others_checkpoints_is_told_what_to_copy(self):
        """Later its loss would cost rounds: refused, until another site's folder is there."""
        cluster = self.cluster("lost")
        self.assert_success(cluster.launch("--set", "run.outer.rounds=1"))
        lost = cluster.output / "node2" / "checkpoints"
        shutil.rmtree(lost)
        refused = cluster.launch("--resume", "--set", "run.outer.rounds=2")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("copy the folder checkpoints of site node1 into the output folder of node2",
                      refused.stdout + refused.stderr)
        shutil.copytree(cluster.output / "node1" / "checkpoints", lost)
        self.assert_success(cluster.launch("--resume", "--set", "run.outer.rounds=2"))

    def test_one_command_starts_and_resumes(self):
        """--resume=auto at every start, as a service gives it: first anew, after a kill from there."""
        cluster = self.cluster("service")
        started = self.start_all(cluster, "--resume=auto")
        wait_until(lambda: all(any(event["event"] == "step" and event["round"] == 3
                                   for event in cluster.events(name)) for name in cluster.names),
                   60, "round 3")
        started["node2"].send_signal(signal.SIGKILL)
        self.assertEqual(started["node1"].wait(timeout=20), 4, cluster.log("node1"))
        for name, process in self.start_all(cluster, "--resume=auto").items():
            self.assertEqual(process.wait(timeout=60), 0, cluster.log(name))
            self.assertIn("resumed from", cluster.log(name))
        self.assert_same_trajectory(cluster, self.uninterrupted())

    def test_auto_begins_anew_only_where_nothing_is_lost(self):
        """A site without the others' checkpoints is told what to copy; a damaged one is no start."""
        cluster = self.cluster("auto")
        rounds = ("--set", "run.outer.rounds=1")
        self.assert_success(cluster.launch("--resume=auto", *rounds))
        lost = cluster.output / "node2" / "checkpoints"
        kept = lost.rename(lost.with_name("kept"))
        refused = cluster.launch("--resume=auto", *rounds)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("copy the folder checkpoints of site node1", refused.stdout + refused.stderr)
        kept.rename(lost)
        for name in cluster.names:
            for manifest in (cluster.output / name / "checkpoints").glob("*/manifest.json"):
                manifest.unlink()
        refused = cluster.launch("--resume=auto", *rounds)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("no site has a checkpoint", refused.stdout + refused.stderr)

    def test_resume_of_nothing_is_refused(self):
        """--resume without any checkpoint says so instead of starting anew."""
        cluster = self.cluster("empty")
        result = cluster.launch("--resume")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("checkpoint", result.stdout + result.stderr)


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
        for name, process in self.start_all(cluster, *options).items():
            self.assertEqual(process.wait(timeout=60), 0, cluster.log(name))

    def end_of(self, cluster: Cluster, name: str, *options: str) -> int:
        """Starts one site alone; returns its exit code."""
        process = cluster.start(name, *options)
        self.processes.append(process)
        return process.wait(timeout=60)

    def last_round(self, cluster: Cluster, name: str) -> int:
        """The newest round that the site has recorded."""
        return max(event["round"] for event in cluster.events(name) if event["event"] == "round")

    def test_each_site_of_a_finished_run_ends_at_once(self):
        """Without meeting anyone, though the coordinator's host is away; launch starts nothing."""
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

    def test_more_rounds_let_it_go_on(self):
        """In the run file of every site, or by --set."""
        cluster = self.finished()
        self.end_all(cluster, "--resume=auto", "--set", "run.outer.rounds=4")
        self.assert_success(cluster.launch("--resume=auto", "--set", "run.outer.rounds=5"))
        for name in cluster.names:
            self.assertEqual(self.last_round(cluster, name), 5)

    def test_a_site_that_was_behind_tries_and_gets_the_rest_from_the_others(self):
        """Alone it ends with code 4, as before; launch brings the others to it."""
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

    def test_the_folder_of_another_run_is_refused(self):
        """Its checkpoints are neither this run's end nor its begin."""
        cluster = self.finished()
        for option in ("--resume=auto", "--resume"):
            code = self.end_of(cluster, "node1", option, "--set", "run.name=next")
            self.assertEqual(code, 2, cluster.log("node1"))
            self.assertIn("has checkpoints of run 'test', and this site is to train run 'next'",
                          cluster.log("node1"))

    def test_a_site_without_a_run_file_asks_the_others_first(self):
        """They may have more rounds; if nobody comes, its checkpoint's own run counts."""
        cluster = self.finished({1: {"run": ""}})
        self.assertEqual(self.end_of(cluster, "node2", "--resume=auto"), 0, cluster.log("node2"))
        self.assertIn("looks for the others, as its config names no run file", cluster.log("node2"))
        self.assertIn("nothing to do: site node2 could not join within 10 s", cluster.log("node2"))
        host = cluster.start("node1", "--resume=auto", "--set", "run.outer.rounds=4")
        self.processes.append(host)
        self.assertEqual(self.end_of(cluster, "node2", "--resume=auto"), 0, cluster.log("node2"))
        self.assertEqual(host.wait(timeout=60), 0, cluster.log("node1"))
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
        wait_until(lambda: all(any(event["event"] == "step" and event["round"] == 2
                                   for event in three.events(name)) for name in three.names),
                   60, "round 2")
        started["node3"].send_signal(signal.SIGKILL)
        for name in ("node1", "node2"):
            self.assertEqual(started[name].wait(timeout=20), 4, three.log(name))
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
