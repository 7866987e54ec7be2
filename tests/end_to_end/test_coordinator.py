"""A coordinator in a process of its own that dies and comes back while its sites train."""

import signal
import subprocess
import time
import unittest

from cluster import FARSTEP, PATIENCE_SECONDS, WATCHFUL, Cluster, ClusterTest, by_event, farstep, wait_until

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
        self.assert_end(cluster, started)
        self.assert_end(cluster, {"coordinator": coordinator})

    def hashes(self, cluster: CoordinatorCluster) -> list[str]:
        """theta_global after each round, which all sites have alike, with each step done once."""
        self.assert_one_theta(cluster)
        self.assert_no_step_twice(cluster)
        for name in cluster.names:
            self.assertEqual({event["generation"] for event in by_event(cluster, name, "round")}, {1})
            self.assertEqual(len(by_event(cluster, name, "step")), ROUNDS * cluster.run["plan"]["base_steps"])
        return [event["theta_hash"] for event in by_event(cluster, cluster.names[0], "round")]

    def undisturbed(self, run: dict) -> list[str]:
        """The hashes of the same run whose coordinator lives."""
        cluster = CoordinatorCluster(self.folder / "undisturbed", 3, run)
        coordinator = self.start_coordinator(cluster)
        self.finish(cluster, self.start_all(cluster), coordinator)
        return self.hashes(cluster)

    def disturbed(self, run: dict, site: dict, kills: list[tuple[int, bool, float]]) -> list[str]:
        """The hashes of a run whose coordinator is killed at each of these (round, in_sync, seconds away)."""
        cluster = CoordinatorCluster(self.folder / "disturbed", 3, run, site)
        coordinator = self.start_coordinator(cluster)
        started = self.start_all(cluster)
        for number, in_sync, away_seconds in kills:
            look = cluster.is_in_sync if in_sync else cluster.is_in_round
            wait_until(lambda: look("node2", number), PATIENCE_SECONDS, f"round {number}")
            coordinator.kill()
            coordinator.wait(timeout=120)
            time.sleep(away_seconds)  # the length of the outage is what is tried
            coordinator = self.start_coordinator(cluster)
        self.finish(cluster, started, coordinator)
        log = (self.folder / "disturbed" / "coordinator.txt").read_text()
        self.assertEqual(log.count("goes on with the run by its journal"), len(kills))
        self.assertFalse(cluster.journal.exists())
        return self.hashes(cluster)

    def test_killed_in_mid_round_and_in_mid_sync(self):
        """For longer than a site may be silent, and for a moment; then before the sites can vote."""
        lossy = {**RUN, "deadlines": {"lost_after_seconds": 3}}
        kills = [(2, False, 5.0), (4, True, 0.0), (6, False, 0.0), (7, True, 0.0)]
        self.assertEqual(self.disturbed(lossy, SLOW_STEPS | SLOW_LINKS, kills), self.undisturbed(lossy))

    def test_streaming_goes_on(self):
        """With fragments and a delay a sync is nearly always under way."""
        run = {**RUN, "sync": {"fragments": 3, "delay_steps": 4}}
        kills = [(number, False, 0.0) for number in (2, 3, 5, 6)]
        self.assertEqual(self.disturbed(run, SLOW_STEPS, kills), self.undisturbed(run))


class Ends(ClusterTest):
    """When the coordinator does not come back, or not with its journal."""

    def start(self, run: dict) -> tuple[CoordinatorCluster, subprocess.Popen, dict]:
        """A run in its second round."""
        cluster = CoordinatorCluster(self.folder, 2, run | {"outer": {"rounds": 1000}})
        coordinator = cluster.start_coordinator()
        self.processes.append(coordinator)
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 2, "node1")
        return cluster, coordinator, started

    def test_sites_end_when_it_stays_away(self):
        """After coordinator_lost_after_seconds, with exit code 4 and a checkpoint."""
        deadlines = WATCHFUL | {"coordinator_lost_after_seconds": 6}
        cluster, coordinator, started = self.start({**RUN, "deadlines": deadlines})
        coordinator.kill()
        for name, process in started.items():
            self.assert_end(cluster, {name: process}, 4)
            self.assertIn("silent for more than 6 s", cluster.log(name))
            self.assertEqual(by_event(cluster, name, "end")[-1]["outcome"], "peer_lost")

    def test_a_damaged_journal_is_set_aside(self):
        """The sites' memory suffices."""
        cluster, coordinator, started = self.start(RUN)
        coordinator.kill()
        coordinator.wait(timeout=120)
        content = bytearray(cluster.journal.read_bytes())
        content[len(content) // 2] ^= 1
        cluster.journal.write_bytes(content)
        self.processes.append(cluster.start_coordinator())
        done = len(by_event(cluster, "node1", "round"))
        for name in cluster.names:
            self.wait_for_rounds(cluster, done + 3, name)
        self.assert_no_step_twice(cluster)
        last = [{event["round"]: event["theta_hash"] for event in by_event(cluster, name, "round")}
                for name in cluster.names]
        common = max(last[0].keys() & last[1].keys())
        self.assertGreater(common, done)
        self.assertEqual(last[0][common], last[1][common])
        for process in started.values():
            process.send_signal(signal.SIGINT)
        self.assert_end(cluster, started, 130)

    def test_all_processes_die_and_resume(self):
        """The journal of a run without processes gives way to the sites' checkpoints."""
        cluster, coordinator, started = self.start(RUN)
        for process in [coordinator, *started.values()]:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=120)
        self.assertTrue(cluster.journal.exists())
        coordinator = cluster.start_coordinator()
        self.processes.append(coordinator)
        started = self.start_all(cluster, "--resume")
        wait_until(lambda: len(by_event(cluster, "node1", "run")) == 2, PATIENCE_SECONDS, "the second start")
        self.wait_for_rounds(cluster, len(by_event(cluster, "node1", "round")) + 1, "node1")
        self.assertGreater(by_event(cluster, "node1", "run")[-1]["start_round"], 0)


if __name__ == "__main__":
    unittest.main()
