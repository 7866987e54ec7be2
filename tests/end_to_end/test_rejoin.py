"""Sites that come back into a run that goes on: real processes, killed and started again."""

import shutil
import signal
import unittest

from cluster import (SECURE, Cluster, ClusterTest, by_event, measures_time, validation_losses,
                     wait_until)

# A site that a busy machine stops for seconds is no lost one.
RUN = {"min_sites": 1, "outer": {"rounds": 40}, "plan": {"base_steps": 15, "base_batch": 1},
       "deadlines": {"lost_after_seconds": 4}}


def steps_of(seconds: float) -> dict:
    """A site's config by which a step takes so long, most of it waiting."""
    return {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": seconds}}]}


class Rejoin(ClusterTest):
    """Who was killed is started again, takes the others' state, and trains with them to the end."""

    def come_back(self, run: dict, how: signal.Signals = signal.SIGKILL, num_sites: int = 3,
                  victim: str = "node2", keeps_folder: bool = True, sites: dict | None = None,
                  **options) -> Cluster:
        """Starts a run, ends the victim, starts it again once the others go on, and waits."""
        folder = self.folder / f"{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        configs = {site: steps_of(0.02) | (sites or {}).get(site, {}) for site in range(num_sites)}
        cluster = Cluster(folder, num_sites, RUN | run, configs, **options)
        started = self.start_all(cluster)
        wait_until(lambda: len(by_event(cluster, victim, "round")) >= 3, 100, "some rounds")
        started[victim].send_signal(how)
        started[victim].wait(timeout=30)
        first = next(name for name in cluster.names if name != victim)
        wait_until(lambda: "generation 2 goes on" in cluster.log(first), 60, "the loss")
        if not keeps_folder:
            shutil.rmtree(cluster.output / victim)
        started[victim] = cluster.start(victim, "--resume=auto")
        self.processes.append(started[victim])
        for name in cluster.names:
            self.assertEqual(started[name].wait(timeout=240), 0, cluster.log(name))
        return cluster

    def assert_together(self, cluster: Cluster, victim: str = "node2"):
        """All ended with one theta_global, and the victim trained again after it came back."""
        rounds = {name: by_event(cluster, name, "round") for name in cluster.names}
        hashes = {name: {event["round"]: event["theta_hash"] for event in events}
                  for name, events in rounds.items()}
        last = cluster.run["outer"]["rounds"]
        for name in cluster.names:
            for number, digest in hashes[name].items():
                self.assertEqual(digest, hashes["node1"][number], (name, number))
            self.assertEqual(hashes[name][last], hashes["node1"][last])
            steps = [(event["round"], event["step"]) for event in by_event(cluster, name, "step")]
            self.assertEqual(len(steps), len(set(steps)), "a step was done twice")
        self.assertGreater(rounds[victim][-1]["local_steps"], 0)
        self.assertGreater(rounds[victim][-1]["averaging_weight"], 0)
        self.assertLess(len(rounds[victim]), last, "it was away for a round at least")
        self.assertEqual(rounds["node1"][-1]["generation"], 3)
        self.assert_told(cluster, victim)

    def assert_told(self, cluster: Cluster, victim: str):
        """The members' events and the report tell of the loss and of the return."""
        views = {name: by_event(cluster, name, "view") for name in cluster.names}
        others = [name for name in cluster.names if name != victim]
        facts = ("round", "generation", "members", "lost", "joined", "reason")
        for name in others:
            told = [[view[fact] for fact in facts] for view in views[name]]
            self.assertEqual(told, [[view[fact] for fact in facts] for view in views[others[0]]])
        loss, back = views[others[0]]
        self.assertEqual((loss["generation"], loss["members"], loss["lost"], loss["joined"]),
                         (2, others, victim, None))
        self.assertTrue(loss["reason"])
        self.assertEqual((back["generation"], back["members"], back["lost"], back["joined"]),
                         (3, cluster.names, None, victim))
        self.assertEqual([view["generation"] for view in views[victim]], [3])
        report = cluster.report()
        self.assertEqual([view["generation"] for view in report["views"]], [2, 3])
        last = cluster.run["outer"]["rounds"]
        present = {site["site"]: site["rounds"] for site in report["presence"]}
        self.assertEqual(present, {name: [[1, last]] for name in others} | {
            victim: [[1, loss["round"] - 1], [back["round"] + 1, last]]})

    def test_a_killed_site_comes_back(self):
        """By the plain strategy and a planned one."""
        for run in ({}, {"plan": RUN["plan"] | {"policy": "hybrid"}}):
            with self.subTest(run=run):
                cluster = self.come_back(run)
                self.assert_together(cluster)
                losses = validation_losses(cluster)
                self.assertLess(losses[40], losses[0])

    @measures_time
    def test_it_trains_in_the_round_after_that_of_its_loss(self):
        """If it is started again at once, and a round takes longer than that."""
        run = RUN | {"outer": {"rounds": 4}, "plan": {"base_steps": 80, "base_batch": 1}}
        for sync in ({}, {"codec": {"kind": "int8", "error_feedback": True}}):
            with self.subTest(sync=sync):
                folder = self.folder / str(len(sync))
                folder.mkdir()
                cluster = Cluster(folder, 3, run | {"sync": sync},
                                  {site: steps_of(0.1) for site in range(3)})
                started = self.start_all(cluster)
                wait_until(lambda: by_event(cluster, "node2", "round"), 60, "a round")
                started["node2"].kill()
                started["node2"].wait(timeout=30)
                steps_before = len(by_event(cluster, "node2", "step"))
                started["node2"] = cluster.start("node2", "--resume=auto")
                self.processes.append(started["node2"])
                for name in cluster.names:
                    self.assertEqual(started[name].wait(timeout=240), 0, cluster.log(name))
                self.assert_together(cluster)
                loss, back = by_event(cluster, "node1", "view")
                self.assertEqual(back["round"], loss["round"])
                first = by_event(cluster, "node2", "step")[steps_before]
                self.assertEqual((first["round"], first["step"]), (loss["round"] + 1, 1))

    def test_it_comes_back_whatever_the_sites_exchange(self):
        """Also while a delta is on its way, and where it is the server itself."""
        for run in ({"sync": {"fragments": 3, "delay_steps": 4}},
                    {"sync": {"fragments": 2, "delay_steps": 2, "alpha": 0.5,
                              "codec": {"kind": "int8"}}},
                    {"sync": {"exchange": "parameter_server", "servers": ["node2"]}},
                    {"sync": {"exchange": "ring"}}):
            if SECURE and run.get("sync", {}).get("exchange") == "ring":
                continue  # it makes connections of its own
            with self.subTest(run=run):
                self.assert_together(self.come_back(run))

    def test_it_comes_back_without_its_folder(self):
        """On a new machine, say: with nothing of its own."""
        cluster = self.come_back({}, keeps_folder=False)
        self.assert_together(cluster)
        self.assertIn("its learning rate rises for 40 steps", cluster.log("node2"))

    @measures_time
    def test_a_site_that_comes_back_in_the_last_round_has_the_result(self):
        """The transfer ends after the last round, and the donor waits for its end."""
        # By eager updates no member has a state to give in the middle of a round.
        run = RUN | {"outer": {"rounds": 2}, "plan": {"base_steps": 60, "base_batch": 1},
                     "model": {"vocabulary": 65536}, "strategy": {"kind": "eager_updates"}}
        # The state takes seconds. The donor is node1, and node3 has the coordinator, which would wait
        # for node2 in any case.
        slow = {"network": {"uplink_bits_per_second": 64e6}, "coordinator": {"host": False}}
        hosting = {"coordinator": {"host": True}}
        cluster = Cluster(self.folder, 3, run, {0: steps_of(0.1) | slow, 1: steps_of(0.1),
                                                2: steps_of(0.1) | hosting})
        started = self.start_all(cluster)
        wait_until(lambda: len(by_event(cluster, "node1", "step")) >= 70, 100, "the last round")
        started["node2"].kill()
        started["node2"].wait(timeout=30)
        started["node2"] = cluster.start("node2", "--resume=auto")
        self.processes.append(started["node2"])
        for name in cluster.names:
            self.assertEqual(started[name].wait(timeout=120), 0, cluster.log(name))
        self.assertIn("goes to site node2", cluster.log("node1"))
        self.assertIn("this site saves its last state", cluster.log("node2"))
        self.assertNotIn("goodbye", cluster.log("node2"))
        self.assertEqual(by_event(cluster, "node2", "end")[-1]["outcome"], "done")
        last = [cluster.output / name / "checkpoints" / "round-00002" for name in cluster.names]
        models = [(folder / "model.safetensors").read_bytes() for folder in last]
        self.assertTrue(all(model == models[0] for model in models))
        # It has all of the run: started once more, it finds nothing to do.
        again = cluster.start("node2", "--resume=auto")
        self.processes.append(again)
        self.assertEqual(again.wait(timeout=30), 0, cluster.log("node2"))
        self.assertIn("nothing to do", cluster.log("node2"))
        present = {site["site"]: site["rounds"] for site in cluster.report()["presence"]}
        self.assertEqual(present, {"node1": [[1, 2]], "node2": [[1, 1]], "node3": [[1, 2]]})

    def test_a_site_that_nobody_can_connect_to_comes_back(self):
        """It connects to the site that sends the state, as to all others."""
        hidden = {"network": {"address": ""}}
        self.assert_together(self.come_back({}, secure=True, sites={1: hidden}))

    def test_a_site_that_was_stopped_comes_back(self):
        """It has left at its own wish, and the last site that trained takes it back."""
        self.assert_together(self.come_back({}, signal.SIGTERM, num_sites=2))

    def test_a_frozen_site_joins_again_when_it_wakes(self):
        """In the same process: it was silent for too long, and takes the others' state."""
        cluster = Cluster(self.folder, 3, RUN, {site: steps_of(0.02) for site in range(3)})
        started = self.start_all(cluster)
        wait_until(lambda: len(by_event(cluster, "node2", "round")) >= 3, 60, "some rounds")
        started["node2"].send_signal(signal.SIGSTOP)
        wait_until(lambda: "generation 2 goes on" in cluster.log("node1"), 60, "the loss")
        started["node2"].send_signal(signal.SIGCONT)
        for name in cluster.names:
            self.assertEqual(started[name].wait(timeout=240), 0, cluster.log(name))
        self.assertIn("this site joins again", cluster.log("node2"))
        self.assert_together(cluster)

    def test_a_killed_site_comes_back_into_eager_updates(self):
        """Its first delta counts two rounds after it has the state."""
        self.assert_together(self.come_back({"strategy": {"kind": "eager_updates"}}))


if __name__ == "__main__":
    unittest.main()
