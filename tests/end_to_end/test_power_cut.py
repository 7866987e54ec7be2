"""Runs of which all sites end, and start again with what each has left on its disk."""

import shutil
import signal
import subprocess
import unittest

from cluster import PATIENCE_SECONDS, WATCHFUL, Cluster, ClusterTest, by_event, wait_until

# Until they are stopped: how fast the machine is decides nothing.
RUN = {"min_sites": 1, "outer": {"rounds": 100_000}, "plan": {"base_steps": 8, "base_batch": 1},
       "evaluate": {"every_rounds": 0}, "deadlines": WATCHFUL}
SLOW = {site: {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.03}}]} for site in range(3)}


class PowerCut(ClusterTest):
    """The run goes on with the newest state that most of its sites have, and nobody is refused."""

    before: dict[str, int]  # the rounds of each site when it was started again

    def begin(self, run: dict | None = None) -> tuple[Cluster, dict[str, subprocess.Popen]]:
        """Starts a run of three sites, and waits for its first rounds."""
        cluster = Cluster(self.make_folder(f"run{len(list(self.folder.iterdir()))}"), 3, RUN | (run or {}), SLOW)
        started = self.start_all(cluster, "--resume=auto")
        self.wait_for_rounds(cluster, 3)
        return cluster, started

    def cut_power(self, started: dict[str, subprocess.Popen]):
        """All end at once."""
        for process in started.values():
            process.send_signal(signal.SIGKILL)
        for process in started.values():
            process.wait(timeout=PATIENCE_SECONDS)

    def start_again(self, cluster: Cluster, *names: str) -> dict[str, subprocess.Popen]:
        """Starts the sites, and waits until they have done rounds together."""
        self.before = {name: len(by_event(cluster, name, "round")) for name in names}
        started = {name: self.start_site(cluster, name, "--resume=auto") for name in names}

        def are_together() -> bool:
            return all(any(event["local_steps"] > 0 and event["averaging_weight"] > 0
                           for event in self.rounds_since(cluster, name)) for name in names)
        wait_until(are_together, PATIENCE_SECONDS, "a round in which the steps of each count")
        return started

    def rounds_since(self, cluster: Cluster, name: str) -> list[dict]:
        """The rounds that the site has done since it was started again."""
        return by_event(cluster, name, "round")[self.before[name]:]

    def stop(self, cluster: Cluster, started: dict[str, subprocess.Popen]):
        """The run ends on purpose; its sites had one theta_global in each round."""
        for process in started.values():
            process.send_signal(signal.SIGINT)
        self.assert_end(cluster, started, 130)
        found = {}
        for name in started:
            for event in self.rounds_since(cluster, name):
                found.setdefault(event["round"], {})[name] = event["theta_hash"]
        for number, hashes in found.items():
            self.assertEqual(len(set(hashes.values())), 1, (number, hashes))

    def start_rounds(self, cluster: Cluster) -> dict[str, int]:
        """The rounds that were done at each site's newest start, as it recorded them."""
        return {name: by_event(cluster, name, "run")[-1]["start_round"] for name in cluster.names}

    def newest_round(self, cluster: Cluster, name: str) -> int:
        """That of the site's newest checkpoint."""
        folders = (cluster.output / name / "checkpoints").glob("round-?????")
        return max(int(folder.name.split("-")[1]) for folder in folders)

    def test_survivors_of_a_loss_go_on_with_their_state(self):
        """With the site that was lost, as a newcomer; and without it, where it stays away."""
        for comes_back in (True, False):
            with self.subTest(comes_back=comes_back):
                cluster, started = self.begin()
                started["node3"].send_signal(signal.SIGKILL)
                started["node3"].wait(timeout=PATIENCE_SECONDS)
                rounds = len(by_event(cluster, "node1", "round"))
                self.wait_for_rounds(cluster, rounds + 3, "node1", "node2")
                del started["node3"]
                self.cut_power(started)
                newest = min(self.newest_round(cluster, name) for name in ("node1", "node2"))
                self.assertLess(self.newest_round(cluster, "node3"), newest)
                started = self.start_again(cluster, *cluster.names[:3 if comes_back else 2])
                starts = self.start_rounds(cluster)
                self.assertGreaterEqual(starts["node1"], newest)
                self.assertEqual(starts["node1"], starts["node2"])
                self.stop(cluster, started)

    def test_a_site_without_its_disk_is_a_newcomer(self):
        """Its folder is gone, or both of its checkpoints are damaged: with and without min_sites."""
        for harm, min_sites in ((self.wipe, 1), (self.damage, None)):
            with self.subTest(harm=harm.__name__):
                cluster, started = self.begin({"min_sites": min_sites})
                self.cut_power(started)
                harm(cluster, "node3")
                started = self.start_again(cluster, *cluster.names)
                starts = self.start_rounds(cluster)
                self.assertGreaterEqual(starts["node1"], 1)
                self.assertEqual(starts["node1"], starts["node2"])
                self.assertIn("asks for its state", cluster.log("node3"))
                self.stop(cluster, started)

    def wipe(self, cluster: Cluster, name: str):
        """The site's folder is gone."""
        shutil.rmtree(cluster.output / name)

    def damage(self, cluster: Cluster, name: str):
        """Each of its whole checkpoints has a flipped bit."""
        for folder in (cluster.output / name / "checkpoints").glob("round-?????"):
            path = folder / "site.safetensors"
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(content)

    def test_a_newcomer_without_a_state_saves_none(self):
        """The members die while it waits for their state: it has no checkpoint of fresh weights."""
        cluster, started = self.begin({"deadlines": WATCHFUL | {"coordinator_lost_after_seconds": 8}})
        started["node3"].send_signal(signal.SIGKILL)
        started["node3"].wait(timeout=PATIENCE_SECONDS)
        self.wipe(cluster, "node3")
        started["node3"] = self.start_site(cluster, "node3", "--resume=auto")
        wait_until(lambda: "asks for its state" in cluster.log("node3"), PATIENCE_SECONDS, "the newcomer")
        self.cut_power({name: started[name] for name in ("node1", "node2")})
        self.assertEqual(started["node3"].wait(timeout=PATIENCE_SECONDS), 4)
        self.assertFalse(list((cluster.output / "node3").glob("checkpoints/round-00000*")))


if __name__ == "__main__":
    unittest.main()
