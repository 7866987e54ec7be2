"""Planned runs: unequal sites reach the sync together, whatever they are and become."""

import json
import signal
import unittest

from cluster import Cluster, ClusterTest, by_event, measures_time, validation_losses, wait_until

PAPER_STEP_SECONDS = (0.0717, 0.075, 0.0312, 0.0603)  # the four nodes, at 3/10 of their step times


def emulated(*devices: dict) -> dict:
    """A site config's devices that emulate other speeds."""
    return {"devices": [{"kind": "cpu", "threads": 1, "emulate": emulate} for emulate in devices]}


def waiting_shares(cluster: Cluster) -> dict[int, float]:
    """By round, the share of all sites' time that they waited for their peers."""
    waited: dict[int, float] = {}
    total: dict[int, float] = {}
    for name in cluster.names:
        for event in cluster.events(name):
            if event["event"] not in ("step", "span") or event["round"] == 0:
                continue
            number = event["round"]
            total[number] = total.get(number, 0) + event["seconds"]
            if event.get("cause") == "wait":
                waited[number] = waited.get(number, 0) + event["seconds"]
    return {number: waited.get(number, 0) / total[number] for number in total}


def local_steps(cluster: Cluster) -> dict[str, list[int]]:
    """Each site's steps of every round."""
    return {name: [event["local_steps"] for event in by_event(cluster, name, "round")]
            for name in cluster.names}


class Planning(ClusterTest):
    """The closed loop with real processes."""

    def run_cluster(self, num_sites: int, run: dict, sites: dict[int, dict]) -> Cluster:
        """A finished run without validation, as it is about time."""
        cluster = Cluster(self.folder, num_sites, {"evaluate": {"every_rounds": 0}, **run}, sites)
        self.assert_success(cluster.launch())
        return cluster

    @measures_time
    def test_unequal_sites_wait_for_nobody(self):
        """Nothing is known at first; after four equal steps everyone works all the time."""
        sites = {i: emulated({"step_seconds": s}) for i, s in enumerate(PAPER_STEP_SECONDS)}
        cluster = self.run_cluster(4, {"outer": {"rounds": 4}, "plan": {
            "policy": "hybrid", "base_steps": 60, "base_batch": 1}}, sites)
        shares = waiting_shares(cluster)
        self.assertLess(shares[1], 0.1, shares)  # 0.22 if it were of equal steps
        for number in (3, 4):
            self.assertLess(shares[number], 0.04, shares)
        steps = local_steps(cluster)
        self.assertAlmostEqual(steps["node3"][0] / steps["node2"][0], 2.3, delta=0.3)
        plans = [event for event in by_event(cluster, "node1", "plan") if event["round"] == 1]
        self.assertIn("until 4 steps of the round have measured them", plans[0]["reason"])
        self.assertIn("measured in the run", plans[1]["reason"])
        self.assertAlmostEqual(steps["node3"][3] / steps["node2"][3], 75 / 31.2, delta=0.15)

    @measures_time
    def test_a_site_that_slows_down_is_given_less(self):
        """From its 60th step on node 1 takes twice as long: two rounds later nobody waits."""
        slowing = {"step_seconds": 0.04, "changes": [{"step": 60, "times": 2}]}
        cluster = self.run_cluster(2, {"outer": {"rounds": 5}, "plan": {
            "policy": "hybrid", "base_steps": 40, "base_batch": 1}},
            {0: emulated(slowing), 1: emulated({"step_seconds": 0.04})})
        shares = waiting_shares(cluster)
        self.assertGreater(max(shares[2], shares[3]), 0.1, shares)
        for number in (4, 5):
            self.assertLess(shares[number], 0.04, shares)
        steps = local_steps(cluster)
        self.assertAlmostEqual(steps["node2"][4] / steps["node1"][4], 2, delta=0.1)

    @measures_time
    def test_a_round_ends_by_its_deadline(self):
        """A site that slows down in mid-round does fewer steps instead of keeping others waiting."""
        slowing = {"step_seconds": 0.04, "changes": [{"step": 60, "times": 2}]}
        cluster = self.run_cluster(2, {"outer": {"rounds": 3}, "plan": {
            "policy": "hybrid", "base_steps": 40, "base_batch": 1, "round_end": "deadline"}},
            {0: emulated(slowing), 1: emulated({"step_seconds": 0.04})})
        shares = waiting_shares(cluster)
        steps = local_steps(cluster)
        self.assertLess(steps["node1"][1], 35)
        for number in (2, 3):
            self.assertLess(shares[number], 0.05, shares)

    def test_all_sites_hold_one_plan_and_one_theta(self):
        """Replanning changes the steps of a round, never the agreement."""
        sites = {i: emulated({"step_seconds": s}) for i, s in enumerate((0.02, 0.01, 0.03))}
        cluster = Cluster(self.folder, 3, {"outer": {"rounds": 4}, "plan": {"policy": "hybrid"}},
                          sites)
        self.assert_success(cluster.launch())
        hashes = [[event["theta_hash"] for event in by_event(cluster, name, "round")]
                  for name in cluster.names]
        self.assertEqual(hashes[0], hashes[1])
        self.assertEqual(hashes[0], hashes[2])
        last = [by_event(cluster, name, "round")[-1] for name in cluster.names]
        self.assertAlmostEqual(sum(event["averaging_weight"] for event in last), 1)
        self.assertIn("measured in the run", by_event(cluster, "node1", "plan")[-1]["reason"])

    def test_a_resumed_run_keeps_what_it_learned(self):
        """Stopped in a later round, the sites go on with the plan that they had."""
        sites = {i: emulated({"step_seconds": s}) for i, s in enumerate((0.06, 0.03))}
        run = {"outer": {"rounds": 4}, "plan": {"policy": "hybrid", "base_steps": 20}}
        cluster = Cluster(self.folder, 2, run, sites)
        started = self.start_all(cluster)
        wait_until(lambda: any(event["event"] == "step" and event["round"] == 3
                               for event in cluster.events("node1")), 60, "node1 reaches round 3")
        for process in started.values():
            process.send_signal(signal.SIGINT)
        for process in started.values():
            self.assertEqual(process.wait(timeout=30), 130)
        self.assert_success(cluster.launch("--resume"))
        steps = local_steps(cluster)
        self.assertEqual([len(steps[name]) for name in cluster.names], [4, 4])
        for number in (1, 2, 3):
            self.assertAlmostEqual(steps["node2"][number] / steps["node1"][number], 2, delta=0.6)

    def test_a_run_resumes_within_its_first_round(self):
        """Stopped before the sites were measured and after: they still hold one plan and one theta."""
        sites = {i: emulated({"step_seconds": s}) for i, s in enumerate((0.06, 0.03))}
        run = {"outer": {"rounds": 2}, "plan": {"policy": "hybrid", "base_steps": 20}}
        for step in (2, 8):
            folder = self.folder / f"step{step}"
            folder.mkdir()
            cluster = Cluster(folder, 2, run, sites)
            started = self.start_all(cluster)
            wait_until(lambda: any(event["event"] == "step" and event["step"] >= step
                                   for event in cluster.events("node1")), 60, f"step {step}")
            for process in started.values():
                process.send_signal(signal.SIGINT)
            for name, process in started.items():
                self.assertEqual(process.wait(timeout=30), 130, cluster.log(name))
            self.assert_success(cluster.launch("--resume"))
            hashes = [[event["theta_hash"] for event in by_event(cluster, name, "round")]
                      for name in cluster.names]
            self.assertEqual(len(hashes[0]), 2)
            self.assertEqual(hashes[0], hashes[1])
            steps = local_steps(cluster)
            for number in (0, 1):
                self.assertAlmostEqual(steps["node2"][number] / steps["node1"][number], 1.9,
                                       delta=0.6)

    def test_a_run_killed_after_it_was_measured_begins_anew(self):
        """Only some sites have a checkpoint from after the measuring sync: all go back to the start."""
        sites = {i: emulated({"step_seconds": s}) for i, s in enumerate((0.06, 0.03))}
        cluster = Cluster(self.folder, 2, {"outer": {"rounds": 2}, "plan": {
            "policy": "hybrid", "base_steps": 20}}, sites)
        started = self.start_all(cluster)
        wait_until(lambda: any(event["event"] == "step" and event["step"] >= 8
                               for event in cluster.events("node1")), 60, "step 8")
        started["node2"].send_signal(signal.SIGKILL)
        self.assertEqual(started["node1"].wait(timeout=30), 4, cluster.log("node1"))
        self.assert_success(cluster.launch("--resume"))
        for name in cluster.names:
            self.assertEqual(by_event(cluster, name, "run")[-1]["start_step"], 0)
            self.assertEqual(len(by_event(cluster, name, "round")), 2)

    @measures_time
    def test_two_devices_train_as_one(self):
        """The batch is shared out by their speed; losses are those of one device."""
        folder = self.folder / "one"
        folder.mkdir()
        run = {"outer": {"rounds": 2}, "plan": {"base_steps": 12, "base_batch": 6}}
        one = Cluster(folder, 1, run)
        self.assert_success(one.launch())
        sites = {0: emulated({"sequence_seconds": 0.01}, {"sequence_seconds": 0.02})}
        two = Cluster(self.folder, 1, run, sites)
        self.assert_success(two.launch())
        for rounds, loss in validation_losses(one).items():
            self.assertAlmostEqual(validation_losses(two)[rounds], loss, delta=1e-4)
        devices = two.report()["sites"][0]["devices"]
        self.assertEqual(len(devices), 2)
        last = by_event(two, "node1", "step")[-1]
        for seconds in last["device_seconds"]:  # 4 and 2 of the 6 sequences
            self.assertAlmostEqual(seconds, 0.04, delta=0.015)

    def test_a_policy_without_its_figures_is_refused(self):
        """steps_by_tflops needs profiles: exit 2, the site and what to do."""
        cluster = Cluster(self.folder, 2, {"plan": {"policy": "steps_by_tflops"}})
        result = cluster.launch()
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("farstep profile", result.stdout + result.stderr)

    def test_profiles_plan_the_first_round(self):
        """steps_by_tflops with the sites' profiles; one of another model is refused."""
        tflops = (100.0, 160.0)
        sites = {i: {"profile": f"node{i + 1}.profile.json"} for i in range(2)}
        cluster = Cluster(self.folder, 2, {"plan": {"policy": "steps_by_tflops"}}, sites)
        for i, value in enumerate(tflops):
            profile = {"site": cluster.names[i], "links": [], "devices": [
                {"name": "card", "fp16_tflops": value, "bf16_tflops": None, "memory_bytes": None,
                 "max_micro_batch": None, "step_seconds": []}]}
            (self.folder / f"{cluster.names[i]}.profile.json").write_text(json.dumps(profile), encoding="utf-8")
        self.assert_success(cluster.launch())
        self.assertEqual(local_steps(cluster), {"node1": [5] * 3, "node2": [8] * 3})
        profile["model"] = {"parameters": 1, "sequence_length": 32, "compute": "fp32"}
        (self.folder / "node2.profile.json").write_text(json.dumps(profile), encoding="utf-8")
        result = cluster.launch("--set", "output=again")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("measured with another model", result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
