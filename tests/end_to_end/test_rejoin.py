"""Sites that are lost, and come back into a run that goes on: real processes, killed and started again."""

import shutil
import signal
import subprocess
import unittest

from cluster import PATIENCE_SECONDS, WATCHFUL, Cluster, ClusterTest, by_event, plain_if_ring, wait_until
from measured import Figure, within_tries

# Until they are stopped: how fast the machine is decides nothing.
RUN = {"min_sites": 1, "outer": {"rounds": 100_000}, "plan": {"base_steps": 15, "base_batch": 1},
       "evaluate": {"every_rounds": 0}}


def steps_of(seconds: float) -> dict:
    """A site's config by which a step takes so long, most of it waiting."""
    return {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": seconds}}]}


class Rejoin(ClusterTest):
    """Who was lost takes the others' state when it comes back, and trains with them."""

    def begin(self, run: dict, num_sites: int = 3, sites: dict | None = None,
              **options) -> tuple[Cluster, dict[str, subprocess.Popen]]:
        """Starts a run, and waits for its first rounds."""
        configs = {site: steps_of(0.02) | (sites or {}).get(site, {}) for site in range(num_sites)}
        folder = self.make_folder(f"run{len(list(self.folder.iterdir()))}")
        cluster = Cluster(folder, num_sites, RUN | run, configs, **options)
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 3)
        return cluster, started

    def lose(self, cluster: Cluster, started: dict, how: signal.Signals, victim: str = "node2"):
        """Signals the victim, and waits until the others have done a round without it."""
        witness = next(name for name in cluster.names if name != victim)
        generation = by_event(cluster, witness, "round")[-1]["generation"] + 1
        started[victim].send_signal(how)
        if how != signal.SIGSTOP:
            started[victim].wait(timeout=PATIENCE_SECONDS)
        self.wait_for_generation(cluster, generation, witness)
        self.assertIn(f"generation {generation} goes on", cluster.log(witness))

    def wait_for_generation(self, cluster: Cluster, generation: int, name: str, rounds: int = 1):
        """Waits until the site has done rounds of that generation, with steps that count."""
        wait_until(lambda: sum(event["generation"] == generation and event["local_steps"] > 0
                               and event["averaging_weight"] > 0
                               for event in by_event(cluster, name, "round")) >= rounds,
                   PATIENCE_SECONDS, f"{name} in generation {generation}")

    def bring_back(self, cluster: Cluster, started: dict, victim: str = "node2"):
        """Starts the victim again, or wakes it, and waits until its steps count."""
        witness = next(name for name in cluster.names if name != victim)
        generation = by_event(cluster, witness, "round")[-1]["generation"] + 1
        if started[victim].poll() is None:
            started[victim].send_signal(signal.SIGCONT)
        else:
            started[victim] = self.start_site(cluster, victim, "--resume=auto")
        self.wait_for_generation(cluster, generation, victim, rounds=2)

    def stop_all(self, cluster: Cluster, started: dict):
        """All end by SIGINT."""
        for process in started.values():
            process.send_signal(signal.SIGINT)
        self.assert_end(cluster, started, 130)

    def assert_together(self, cluster: Cluster, losses: int = 1, victim: str = "node2"):
        """There was one theta_global in each round, nobody did a step twice, and all of the others' count."""
        others = [name for name in cluster.names if name != victim]
        rounds = {name: {event["round"]: event for event in by_event(cluster, name, "round")}
                  for name in cluster.names}
        for name in cluster.names:
            for number, event in rounds[name].items():
                first = rounds[others[0]].get(number, event)  # one may end a round before the others
                self.assertEqual(event["theta_hash"], first["theta_hash"], (name, number))
        self.assert_no_step_twice(cluster)
        for name in others:
            last = max(rounds[name])
            self.assertEqual(sorted(rounds[name]), list(range(1, last + 1)))
            steps = [event for event in by_event(cluster, name, "step") if event["round"] <= last]
            self.assertEqual(len(steps), sum(event["local_steps"] for event in rounds[name].values()))
        self.assertLess(len(rounds[victim]), max(rounds[victim]), "it was away for a round at least")
        self.assert_told(cluster, losses, victim, rounds)

    def assert_told(self, cluster: Cluster, losses: int, victim: str, rounds: dict):
        """The members' events and the report tell of each loss and each return."""
        others = [name for name in cluster.names if name != victim]
        facts = ("round", "generation", "members", "lost", "joined", "reason")
        views = {name: [{fact: view[fact] for fact in facts} for view in by_event(cluster, name, "view")]
                 for name in cluster.names}
        told = views[others[0]][:2 * losses]  # later ones are of the end
        for name in others:
            self.assertEqual(views[name][:2 * losses], told)
        ranges, begin = [], 1
        for number in range(losses):
            loss, back = told[2 * number:2 * number + 2]
            generation = 2 * number + 2
            self.assertEqual((loss["generation"], loss["members"], loss["lost"], loss["joined"]),
                             (generation, others, victim, None))
            self.assertTrue(loss["reason"])
            self.assertEqual((back["generation"], back["members"], back["lost"], back["joined"]),
                             (generation + 1, cluster.names, None, victim))
            self.assertIn(back["generation"], [view["generation"] for view in views[victim]])
            ranges.append([begin, loss["round"] - 1])
            begin = back["round"] + 1
        report = cluster.report()
        self.assertEqual([view["generation"] for view in report["views"]][:2 * losses],
                         list(range(2, 2 + 2 * losses)))
        # Of members, also of one that ended before it had recorded the others' last round.
        last = max(number for known in rounds.values() for number in known)
        present = {site["site"]: site["rounds"] for site in report["presence"]}
        self.assertEqual(present, {name: [[1, last]] for name in others} | {victim: [*ranges, [begin, last]]})

    def test_a_killed_site_comes_back_whatever_the_sites_exchange(self):
        """Also while a delta is on its way, where it is the server itself, and with a planned round."""
        for run in ({"sync": {"fragments": 3, "delay_steps": 4}},
                    {"sync": {"fragments": 2, "delay_steps": 2, "alpha": 0.5, "codec": {"kind": "int8"}},
                     "plan": RUN["plan"] | {"policy": "hybrid"}},
                    {"sync": {"exchange": "parameter_server", "servers": ["node2"]}},
                    {"sync": {"exchange": "ring"}},
                    {"strategy": {"kind": "eager_updates"}}):
            with self.subTest(run=run):
                cluster, started = self.begin(run, secure=plain_if_ring(run))
                self.lose(cluster, started, signal.SIGKILL)
                self.bring_back(cluster, started)
                self.stop_all(cluster, started)
                self.assert_together(cluster)

    def test_a_site_that_nobody_can_connect_to_comes_back_without_its_folder(self):
        """On a new machine, say: with nothing of its own. It connects to the site that sends the state."""
        hidden = {"network": {"address": ""}}
        cluster, started = self.begin({}, secure=True, sites={1: hidden})
        self.lose(cluster, started, signal.SIGKILL)
        shutil.rmtree(cluster.output / "node2")
        self.bring_back(cluster, started)
        self.stop_all(cluster, started)
        self.assertIn("its learning rate rises for 40 steps", cluster.log("node2"))
        self.assert_together(cluster)

    def test_a_frozen_site_and_a_stopped_one_come_back(self):
        """The first in the same process: it was silent for too long, and takes the others' state.

        The second has left at its own wish, and the last site that trained takes it back.
        """
        cluster, started = self.begin({"deadlines": WATCHFUL}, num_sites=2)
        self.lose(cluster, started, signal.SIGSTOP)
        self.bring_back(cluster, started)
        self.assertIn("this site joins again", cluster.log("node2"))
        self.lose(cluster, started, signal.SIGTERM)
        self.assertEqual(started["node2"].returncode, 130)
        self.bring_back(cluster, started)
        self.stop_all(cluster, started)
        self.assert_together(cluster, losses=2)

    def test_it_trains_in_the_round_after_that_of_its_loss(self):
        """If it is started again at once, and a round takes longer than that."""
        within_tries(self, self.rounds_away)

    def rounds_away(self) -> list[Figure]:
        """For how many rounds a site is away that is killed and started again, with a lossy codec."""
        sync = {"codec": {"kind": "int8", "error_feedback": True}}
        cluster = Cluster(self.folder, 3, RUN | {"plan": {"base_steps": 100, "base_batch": 1}, "sync": sync},
                          {site: steps_of(0.1) for site in range(3)})
        started = self.start_all(cluster)
        self.wait_for_rounds(cluster, 1)
        started["node2"].kill()
        started["node2"].wait(timeout=PATIENCE_SECONDS)
        steps_before = len(by_event(cluster, "node2", "step"))
        started["node2"] = self.start_site(cluster, "node2", "--resume=auto")
        self.wait_for_generation(cluster, 3, "node2")
        self.stop_all(cluster, started)
        self.assert_together(cluster)
        loss, back = by_event(cluster, "node1", "view")[:2]
        first = by_event(cluster, "node2", "step")[steps_before]
        self.assertEqual((first["round"], first["step"]), (back["round"] + 1, 1))
        return [Figure("rounds from its loss to its return", back["round"] - loss["round"], at_most=0)]

    def test_a_site_that_comes_back_in_the_last_round_has_the_result(self):
        """The transfer ends after the last round, and the donor waits for its end."""
        # By eager updates no member has a state to give in the middle of a round.
        run = RUN | {"outer": {"rounds": 2}, "plan": {"base_steps": 40, "base_batch": 1},
                     "model": {"vocabulary": 65536}, "strategy": {"kind": "eager_updates"}}
        # The second round is so long that the site comes back before its end, on a busy machine too.
        paced = steps_of(0.05)
        paced["devices"][0]["emulate"]["changes"] = [{"step": 41, "times": 12}]
        # The state takes seconds. The donor is node1, and node3 has the coordinator, which would wait
        # for node2 in any case.
        slow = {"network": {"uplink_bits_per_second": 64e6}, "coordinator": {"host": False}}
        cluster = Cluster(self.folder, 3, run, {0: paced | slow, 1: paced,
                                                2: paced | {"coordinator": {"host": True}}})
        started = self.start_all(cluster)
        self.wait_for_step(cluster, 2, 1, "node1")
        started["node2"].kill()
        started["node2"].wait(timeout=PATIENCE_SECONDS)
        started["node2"] = self.start_site(cluster, "node2", "--resume=auto")
        self.assert_end(cluster, started)
        self.assertIn("goes to site node2", cluster.log("node1"))
        self.assertIn("this site saves its last state", cluster.log("node2"))
        self.assertNotIn("goodbye", cluster.log("node2"))
        self.assertEqual(by_event(cluster, "node2", "end")[-1]["outcome"], "done")
        last = [cluster.output / name / "checkpoints" / "round-00002" for name in cluster.names]
        models = [(folder / "model.safetensors").read_bytes() for folder in last]
        self.assertTrue(all(model == models[0] for model in models))
        # It has all of the run: started once more, it finds nothing to do.
        self.assert_end(cluster, {"node2": self.start_site(cluster, "node2", "--resume=auto")})
        self.assertIn("nothing to do", cluster.log("node2"))
        present = {site["site"]: site["rounds"] for site in cluster.report()["presence"]}
        self.assertEqual(present, {"node1": [[1, 2]], "node2": [[1, 1]], "node3": [[1, 2]]})


if __name__ == "__main__":
    unittest.main()
