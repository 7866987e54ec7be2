"""A coordinator in a process of its own that dies and comes back while its sites train."""

import json
import signal
import subprocess
import time
import unittest

from cluster import FARSTEP, Cluster, ClusterTest, by_event, farstep, wait_until

ROUNDS = 8
# All sites are needed: a site that is taken for lost would end the run.
RUN = {"outer": {"rounds": ROUNDS}, "plan": {"base_steps": 30, "base_batch": 1},
       "evaluate": {"every_rounds": 0}}
NO_HOST = {"coordinator": {"host": False}}
# Slow enough that a kill comes inside a round; and inside an exchange.
SLOW_STEPS = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.03}}]}
SLOW_LINKS = {"network": {"emulate": {"rate_bits_per_second": 3e6, "delay_seconds": 0.05}}}


class CoordinatorCluster(Cluster):
    """A cluster in which no site hosts the coordinator."""

    def __init__(self, folder, num_sites, run, site=None):
        folder.mkdir(exist_ok=True)
        super().__init__(folder, num_sites, run,
                         {i: {**NO_HOST, **(site or {})} for i in range(num_sites)})
        self.journal = folder / "out" / "coordinator" / "coordinator.journal"
        self.config = self.write_coordinator_config(output="out/coordinator")

    def start_coordinator(self) -> subprocess.Popen:
        """Starts the coordinator, again and again if it has died."""
        with open(self.folder / "coordinator.txt", "a", encoding="utf-8") as log:
            return subprocess.Popen([str(FARSTEP), "coordinator", "--config", str(self.config)],
                                    stdout=log, stderr=log)

    def is_in_round(self, name: str, number: int) -> bool:
        """Whether the site is in the middle of the round's steps."""
        steps = [event for event in by_event(self, name, "step") if event["round"] == number]
        return 0 < len(steps) < self.run["plan"]["base_steps"]

    def is_in_sync(self, name: str, number: int) -> bool:
        """Whether the site has done all steps of the round, and the round is not finished."""
        steps = [event for event in by_event(self, name, "step") if event["round"] == number]
        done = any(event["round"] == number for event in by_event(self, name, "round"))
        return len(steps) == self.run["plan"]["base_steps"] and not done


class Restarts(ClusterTest):
    """The run goes on as if the coordinator had not died."""

    def start_coordinator(self, cluster: CoordinatorCluster) -> subprocess.Popen:
        """As the cluster does; the process ends with the test."""
        process = cluster.start_coordinator()
        self.processes.append(process)
        return process

    def finish(self, cluster: CoordinatorCluster, started: dict, coordinator: subprocess.Popen):
        """All processes end well."""
        for name, process in started.items():
            self.assertEqual(process.wait(timeout=120), 0, cluster.log(name))
        self.assertEqual(coordinator.wait(timeout=30), 0, cluster.log("coordinator"))

    def hashes(self, cluster: CoordinatorCluster) -> list[str]:
        """theta_global after each round, which all sites have alike, with each step done once."""
        every = []
        for name in cluster.names:
            rounds = by_event(cluster, name, "round")
            self.assertEqual([event["round"] for event in rounds], list(range(1, ROUNDS + 1)))
            self.assertEqual({event["generation"] for event in rounds}, {1})
            steps = [(event["round"], event["step"]) for event in by_event(cluster, name, "step")]
            self.assertEqual(len(steps), len(set(steps)))
            self.assertEqual(len(steps), ROUNDS * cluster.run["plan"]["base_steps"])
            every.append([event["theta_hash"] for event in rounds])
        for hashes in every:
            self.assertEqual(hashes, every[0])
        return every[0]

    def undisturbed(self, run: dict) -> list[str]:
        """The hashes of the same run whose coordinator lives."""
        cluster = CoordinatorCluster(self.folder / "undisturbed", 3, run)
        coordinator = self.start_coordinator(cluster)
        self.finish(cluster, self.start_all(cluster), coordinator)
        return self.hashes(cluster)

    def disturbed(self, run: dict, site: dict, kills: list, away_seconds: float) -> list[str]:
        """The hashes of a run whose coordinator is killed at each of these (round, in_sync)."""
        cluster = CoordinatorCluster(self.folder / "disturbed", 3, run, site)
        coordinator = self.start_coordinator(cluster)
        started = self.start_all(cluster)
        for number, in_sync in kills:
            look = cluster.is_in_sync if in_sync else cluster.is_in_round
            wait_until(lambda: look("node2", number), 60, f"round {number}")
            coordinator.kill()
            coordinator.wait(timeout=10)
            time.sleep(away_seconds)  # the length of the outage is what is tried
            coordinator = self.start_coordinator(cluster)
        self.finish(cluster, started, coordinator)
        log = (self.folder / "disturbed" / "coordinator.txt").read_text()
        self.assertEqual(log.count("goes on with the run by its journal"), len(kills))
        self.assertFalse(cluster.journal.exists())
        return self.hashes(cluster)

    def test_killed_in_mid_round(self):
        """Longer than a site may be silent; then shorter."""
        lossy = {**RUN, "deadlines": {"lost_after_seconds": 1}}
        expected = self.undisturbed(lossy)
        self.assertEqual(self.disturbed(lossy, SLOW_STEPS, [(2, False), (5, False)], 2.5), expected)

    def test_killed_in_mid_sync(self):
        """Sites have arrived or exchange their deltas; the outage begins before they can vote."""
        expected = self.undisturbed(RUN)
        kills = [(2, True), (4, True), (6, True)]
        self.assertEqual(self.disturbed(RUN, SLOW_LINKS, kills, 0.0), expected)

    def test_streaming_goes_on(self):
        """With fragments and a delay a sync is nearly always under way."""
        run = {**RUN, "sync": {"fragments": 3, "delay_steps": 4}}
        expected = self.undisturbed(run)
        kills = [(2, False), (3, False), (5, False), (6, False)]
        self.assertEqual(self.disturbed(run, SLOW_STEPS, kills, 0.0), expected)


class Ends(ClusterTest):
    """When the coordinator does not come back, or not with its journal."""

    def start(self, run: dict) -> tuple[CoordinatorCluster, subprocess.Popen, dict]:
        """A run in its second round."""
        cluster = CoordinatorCluster(self.folder, 2, run | {"outer": {"rounds": 1000}})
        coordinator = cluster.start_coordinator()
        self.processes.append(coordinator)
        started = self.start_all(cluster)
        wait_until(lambda: len(by_event(cluster, "node1", "round")) >= 2, 60, "two rounds")
        return cluster, coordinator, started

    def test_sites_end_when_it_stays_away(self):
        """After coordinator_lost_after_seconds, with exit code 4 and a checkpoint."""
        deadlines = {"lost_after_seconds": 1, "coordinator_lost_after_seconds": 4}
        cluster, coordinator, started = self.start({**RUN, "deadlines": deadlines})
        coordinator.kill()
        began = time.monotonic()
        for name, process in started.items():
            self.assertEqual(process.wait(timeout=30), 4, cluster.log(name))
            self.assertIn("silent for more than 4 s", cluster.log(name))
            self.assertEqual(by_event(cluster, name, "end")[-1]["outcome"], "peer_lost")
        self.assertGreater(time.monotonic() - began, 3)

    def test_a_damaged_journal_is_refused(self):
        """Exit code 3 with the file; without the file the sites' memory suffices."""
        cluster, coordinator, started = self.start(RUN)
        coordinator.kill()
        coordinator.wait(timeout=10)
        content = bytearray(cluster.journal.read_bytes())
        content[len(content) // 2] ^= 1
        cluster.journal.write_bytes(content)
        refused = farstep("coordinator", "--config", cluster.config)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn(str(cluster.journal), refused.stderr)
        self.assertIn("delete it", refused.stderr)
        cluster.journal.unlink()
        self.processes.append(cluster.start_coordinator())
        done = len(by_event(cluster, "node1", "round"))
        for name in cluster.names:
            wait_until(lambda name=name: len(by_event(cluster, name, "round")) >= done + 3, 60,
                       f"rounds of {name}")
            steps = [(event["round"], event["step"]) for event in by_event(cluster, name, "step")]
            self.assertEqual(len(steps), len(set(steps)), "no step is done twice")
        last = [{event["round"]: event["theta_hash"] for event in by_event(cluster, name, "round")}
                for name in cluster.names]
        common = max(last[0].keys() & last[1].keys())
        self.assertGreater(common, done)
        self.assertEqual(last[0][common], last[1][common])
        for process in started.values():
            process.send_signal(signal.SIGINT)
        for name, process in started.items():
            self.assertEqual(process.wait(timeout=30), 130, cluster.log(name))

    def test_all_processes_die_and_resume(self):
        """The journal of a run without processes gives way to the sites' checkpoints."""
        cluster, coordinator, started = self.start(RUN)
        for process in [coordinator, *started.values()]:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=10)
        self.assertTrue(cluster.journal.exists())
        coordinator = cluster.start_coordinator()
        self.processes.append(coordinator)
        started = self.start_all(cluster, "--resume")
        wait_until(lambda: len(by_event(cluster, "node1", "run")) == 2, 60, "the second start")
        done = len(by_event(cluster, "node1", "round"))
        wait_until(lambda: len(by_event(cluster, "node1", "round")) > done, 60, "a round")
        self.assertGreater(by_event(cluster, "node1", "run")[-1]["start_round"], 0)


if __name__ == "__main__":
    unittest.main()
