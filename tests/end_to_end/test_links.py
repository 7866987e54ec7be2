"""Links that a run measures itself, and a sync that it chooses by them."""

import unittest

from cluster import Cluster, ClusterTest, by_event
from measured import Figure, near, within_tries

RATE_BITS_PER_SECOND = 10e6
DELAY_SECONDS = 0.02
STEP_SECONDS = 0.1
STEPS = 20
TARGET = 0.05


def exposed_share(cluster: Cluster, name: str, number: int) -> float:
    """What of a site's time in a round was exposed WAN time."""
    seconds = {"step": 0.0, "wan": 0.0, "other": 0.0}
    for event in cluster.events(name):
        if event["event"] == "step" and event["round"] == number:
            seconds["step"] += event["seconds"]
        if event["event"] == "span" and event["round"] == number:
            seconds["wan" if event["cause"] == "wan" else "other"] += event["seconds"]
    return seconds["wan"] / sum(seconds.values())


class Links(ClusterTest):
    """Two sites over an emulated line on which a blocking sync takes nearly as long as a round."""

    def cluster(self, rounds: int) -> Cluster:
        """They sync about 2.1 MB of fp32 until they know better."""
        run = {"model": {"hidden": 128, "intermediate": 384, "layers": 2},
               "outer": {"rounds": rounds}, "evaluate": {"every_rounds": 0},
               "plan": {"base_steps": STEPS, "base_batch": 1, "wan_target": TARGET}}
        site = {"devices": [{"kind": "cpu", "threads": 1,
                             "emulate": {"step_seconds": STEP_SECONDS}}],
                "network": {"emulate": {"rate_bits_per_second": RATE_BITS_PER_SECOND,
                                        "delay_seconds": DELAY_SECONDS}}}
        return Cluster(self.folder, 2, run, {0: site, 1: site})

    def test_a_slow_line_is_measured_and_hidden(self):
        """Blocking fp32 at first; then what keeps the target, by the speed that was measured."""
        within_tries(self, self.figures_of_the_line)

    def figures_of_the_line(self) -> list[Figure]:
        """Exposed shares and measured rates, after all else of the run was checked."""
        cluster = self.cluster(5)
        self.assert_success(cluster.launch())
        self.assert_one_theta(cluster)
        changes = [by_event(cluster, name, "sync_change") for name in cluster.names]
        self.assertEqual([[{**change, "time": 0, "site": ""} for change in some] for some in changes],
                         [[{**changes[0][0], "time": 0, "site": ""}]] * 2)
        self.assertEqual(changes[0][0]["round"], 3)
        print(changes[0][0]["reason"])
        figures = []
        for name in cluster.names:
            links = by_event(cluster, name, "link")
            self.assertEqual({event["rtt_seconds"] for event in links}, {2 * DELAY_SECONDS})
            sent = sum(event["bytes_sent"] for event in links if event["peer"])
            self.assertEqual(sent, sum(event["wan_bytes_sent"]
                                       for event in by_event(cluster, name, "round")))
            figures.append(Figure(f"exposed share at {name} in round 1", exposed_share(cluster, name, 1),
                                  at_least=0.3))
            figures += [Figure(f"exposed share at {name} in round {number}",
                               exposed_share(cluster, name, number), at_most=2 * TARGET)  # a busy machine adds to it
                        for number in (4, 5)]
            figures += [near(f"rate of a link of {name}", event["bits_per_second"], RATE_BITS_PER_SECOND,
                             RATE_BITS_PER_SECOND / 10) for event in links]
        report = cluster.report()
        self.assertEqual(len(report["sync_changes"]), 1)
        for site in report["sites"]:
            self.assertEqual(len(site["links"]), 1)
            figures.append(near(f"uplink of {site['site']}", site["uplink_bits_per_second"],
                                RATE_BITS_PER_SECOND, RATE_BITS_PER_SECOND / 10))
        return figures

    def test_a_resumed_run_syncs_as_it_had_chosen(self):
        """Interrupted in a round with fragments, the sites go on with them and decide nothing anew."""
        cluster = self.cluster(5)
        self.interrupt_after(cluster, 4, 8)
        self.assert_success(cluster.launch("--resume"))
        self.assert_one_theta(cluster)
        for name in cluster.names:
            changes = by_event(cluster, name, "sync_change")
            self.assertEqual([change["round"] for change in changes], [3])
            fragments = [event["fragment"] for event in by_event(cluster, name, "sync")
                         if event["round"] == 5]
            self.assertEqual(fragments, list(range(changes[0]["fragments"])))


if __name__ == "__main__":
    unittest.main()
