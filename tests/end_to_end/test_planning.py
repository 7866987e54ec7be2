"""Planned runs: unequal sites reach the sync together, whatever they are and become."""

import json
import signal
import unittest

from cluster import Cluster, ClusterTest, by_event, validation_losses
from measured import Figure, near, within_tries

# The four nodes, at 6/10 of their step times: a busy machine makes a step of less a longer one.
PAPER_STEP_SECONDS = (0.1434, 0.15, 0.0624, 0.1206)


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
        self.assert_one_theta(cluster)
        return cluster

    def test_unequal_sites_wait_for_nobody(self):
        """Nothing is known at first; after four equal steps everyone works all the time."""
        within_tries(self, self.shares_of_unequal_sites)

    def shares_of_unequal_sites(self) -> list[Figure]:
        """What of a round all wait, and how the steps of the fastest and the slowest compare."""
        sites = {i: emulated({"step_seconds": s}) for i, s in enumerate(PAPER_STEP_SECONDS)}
        cluster = self.run_cluster(4, {"outer": {"rounds": 4}, "plan": {
            "policy": "hybrid", "base_steps": 60, "base_batch": 1}}, sites)
        plans = [event for event in by_event(cluster, "node1", "plan") if event["round"] == 1]
        self.assertIn("until 4 steps of the round have measured them", plans[0]["reason"])
        self.assertIn("measured in the run", plans[1]["reason"])
        shares, steps = waiting_shares(cluster), local_steps(cluster)
        return [Figure("waiting share of round 1", shares[1], at_most=0.1),  # 0.22 if it were of equal steps
                *(Figure(f"waiting share of round {number}", shares[number], at_most=0.04)
                  for number in (3, 4)),
                near("steps of node3 for those of node2 in round 1", steps["node3"][0] / steps["node2"][0],
                     2.3, 0.3),
                near("in round 4", steps["node3"][3] / steps["node2"][3], 75 / 31.2, 0.15)]

    def test_a_site_that_slows_down_is_given_less(self):
        """From its 60th step on node 1 takes twice as long: two rounds later nobody waits."""
        within_tries(self, self.shares_beside_a_slower_site)

    def shares_beside_a_slower_site(self) -> list[Figure]:
        """What of a round both wait, and how many steps they are given at last."""
        slowing = {"step_seconds": 0.08, "changes": [{"step": 60, "times": 2}]}
        cluster = self.run_cluster(2, {"outer": {"rounds": 5}, "plan": {
            "policy": "hybrid", "base_steps": 40, "base_batch": 1}},
            {0: emulated(slowing), 1: emulated({"step_seconds": 0.08})})
        shares, steps = waiting_shares(cluster), local_steps(cluster)
        return [Figure("waiting share of rounds 2 and 3", max(shares[2], shares[3]), at_least=0.1),
                *(Figure(f"waiting share of round {number}", shares[number], at_most=0.04)
                  for number in (4, 5)),
                near("steps of node2 for those of node1", steps["node2"][4] / steps["node1"][4], 2, 0.1)]

    def test_a_round_ends_by_its_deadline(self):
        """A site that slows down in mid-round does fewer steps instead of keeping others waiting."""
        within_tries(self, self.shares_with_a_deadline)

    def shares_with_a_deadline(self) -> list[Figure]:
        """What of a round both wait, and the steps of the one that slowed down."""
        slowing = {"step_seconds": 0.08, "changes": [{"step": 60, "times": 2}]}
        cluster = self.run_cluster(2, {"outer": {"rounds": 3}, "plan": {
            "policy": "hybrid", "base_steps": 40, "base_batch": 1, "round_end": "deadline"}},
            {0: emulated(slowing), 1: emulated({"step_seconds": 0.08})})
        shares = waiting_shares(cluster)
        return [Figure("steps of node1 in round 2", local_steps(cluster)["node1"][1], at_most=34),
                *(Figure(f"waiting share of round {number}", shares[number], at_most=0.05)
                  for number in (2, 3))]

    def test_all_sites_hold_one_plan_and_one_theta(self):
        """Replanning changes the steps of a round, never the agreement."""
        sites = {i: emulated({"step_seconds": s}) for i, s in enumerate((0.02, 0.01, 0.03))}
        cluster = Cluster(self.folder, 3, {"outer": {"rounds": 4}, "plan": {"policy": "hybrid"}},
                          sites)
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster)
        last = [by_event(cluster, name, "round")[-1] for name in cluster.names]
        self.assertAlmostEqual(sum(event["averaging_weight"] for event in last), 1)
        self.assertIn("measured in the run", by_event(cluster, "node1", "plan")[-1]["reason"])

    def test_a_run_resumes_with_its_plan(self):
        """Lost or stopped before the sites were measured, or after: they hold one plan and one theta."""
        sites = {i: emulated({"step_seconds": s}) for i, s in enumerate((0.06, 0.03))}
        cluster = Cluster(self.folder, 2, {"outer": {"rounds": 4}, "plan": {
            "policy": "hybrid", "base_steps": 20}}, sites)
        started = self.start_all(cluster)
        self.wait_for_step(cluster, 1, 8, "node1")
        started["node2"].send_signal(signal.SIGKILL)
        self.assert_end(cluster, {"node1": started["node1"]}, 4)
        # Only node1 has a checkpoint from after the measuring sync: all go back to the start.
        self.interrupt_after(cluster, 1, 2, "--resume")
        for name in cluster.names:
            self.assertEqual(by_event(cluster, name, "run")[-1]["start_step"], 0)
        self.interrupt_after(cluster, 1, 8, "--resume")
        self.interrupt_after(cluster, 3, 1, "--resume")
        self.assert_success(cluster.launch("--resume"))
        self.assert_one_theta(cluster)

    def test_two_devices_train_as_one(self):
        """The batch is shared out by their speed; losses are those of one device."""
        run = {"outer": {"rounds": 2}, "plan": {"base_steps": 12, "base_batch": 6}}
        one = Cluster(self.make_folder("one"), 1, run)
        self.assert_success(one.launch())
        within_tries(self, lambda: self.times_of_two_devices(run, validation_losses(one)))

    def times_of_two_devices(self, run: dict, losses: dict[int, float]) -> list[Figure]:
        """The time of each device in the last step, of a run with the losses of one device."""
        sites = {0: emulated({"sequence_seconds": 0.02}, {"sequence_seconds": 0.04})}
        two = Cluster(self.folder, 1, run, sites)
        self.assert_success(two.launch())
        self.assertEqual(validation_losses(two).keys(), losses.keys())
        for rounds, loss in losses.items():
            self.assertAlmostEqual(validation_losses(two)[rounds], loss, delta=1e-4)
        self.assertEqual(len(two.report()["sites"][0]["devices"]), 2)
        seconds = by_event(two, "node1", "step")[-1]["device_seconds"]
        self.assertEqual(len(seconds), 2)
        return [near(f"seconds of device {place}", one, 0.08, 0.03)  # 4 and 2 of the 6 sequences
                for place, one in enumerate(seconds)]

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
