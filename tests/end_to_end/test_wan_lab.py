"""Sites in network namespaces, joined by wan_lab: real TCP and UDP meet what was asked of the links."""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import unittest
from pathlib import Path

from cluster import FARSTEP, Cluster, ClusterTest, farstep, wait_until
from lab import WAN_LAB, Lab, obstacle
from measured import Figure, near, within_tries
from ports import endpoint_of

TRAFFIC = Path(__file__).resolve().parent / "wan_traffic.py"
PORT = 5000


def setUpModule():
    """A lab needs root and TUN devices."""
    if lacks := obstacle():
        raise unittest.SkipTest(lacks)


class LabTest(ClusterTest):
    """A test with a lab of its own."""

    def start_lab(self, *options: str, verb: str = "up") -> Lab:
        """Starts a lab in the test's folder, which ends with the test."""
        self.lab = Lab(self.folder / "lab", *options, verb=verb)
        self.processes.append(self.lab.process)
        return self.lab

    def in_site(self, site: int, *command: object) -> subprocess.Popen:
        """Starts a command inside a site, punctual whatever else the machine does."""
        process = subprocess.Popen(
            [WAN_LAB, "exec", "--site", str(site), "--folder", self.lab.folder, "--",
             "chrt", "--rr", "1", *map(str, command)], stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        self.addCleanup(process.stdout.close)
        return process

    def serve(self, site: int, verb: str, port: int = PORT):
        """Starts an end that others talk to."""
        server = self.in_site(site, sys.executable, TRAFFIC, verb, port)
        self.assertEqual(server.stdout.readline(), "ready\n")

    def talk(self, site: int, *arguments: object) -> dict:
        """What the end that talks to another found."""
        output, _ = self.in_site(site, sys.executable, TRAFFIC, *arguments).communicate(timeout=120)
        return json.loads(output)

    def ping(self, count: int, period: float = 0.02) -> list[float]:
        """Round trips from site 1 to site 2."""
        return self.talk(1, "ping", "10.77.0.2", PORT, count, period)["round_trips"]


class Links(LabTest):
    """What the links do to packets."""

    def test_a_round_trip_takes_what_was_asked(self):
        """Never less, and within 2 ms."""
        def trial() -> list[Figure]:
            self.start_lab("--sites", "2", "--rate", "200M", "--rtt", "80ms")
            self.serve(2, "echo")
            round_trips = self.ping(60)
            self.assertEqual(len(round_trips), 60)
            self.assertGreaterEqual(min(round_trips), 0.080)  # no machine is too fast for that
            return [Figure("median round trip", statistics.median(round_trips), 0.080, 0.082)]
        within_tries(self, trial)

    def test_a_flow_reaches_the_rate(self):
        """TCP payload, which is 3.5 % less than the packets, within 10 %."""
        def trial() -> list[Figure]:
            self.start_lab("--sites", "2", "--rate", "50M", "--rtt", "20ms")
            self.serve(2, "sink")
            rate = self.talk(1, "source", "10.77.0.2", PORT, 4, "cubic")["bits_per_second"]
            return [Figure("rate", rate, 45e6, 50e6)]
        within_tries(self, trial)

    def test_packets_get_lost_at_the_share_asked(self):
        """Of 2000 round trips of two ways that lose 5 % each, 9.75 % plus or minus 3."""
        def trial() -> list[Figure]:
            self.start_lab("--sites", "2", "--rate", "50M", "--loss", "5%")
            self.serve(2, "echo")
            return [near("lost share", 1 - len(self.ping(2000, 0.001)) / 2000, 0.0975, 0.03)]
        within_tries(self, trial)

    def test_a_link_is_cut_healed_and_changed_while_it_runs(self):
        """Nothing passes while it is cut; a new delay holds at once."""
        def trial() -> list[Figure]:
            self.start_lab("--sites", "2", "--rate", "50M", "--rtt", "8ms")
            self.serve(2, "echo")
            self.assertEqual(len(self.ping(5)), 5)
            self.assertTrue(self.lab.control("cut", "2")["is_cut"])
            self.assertEqual(self.ping(5), [])
            self.lab.control("heal", "2")
            self.assertEqual(len(self.ping(5)), 5)
            self.lab.control("set", "--site", "2", "--delay", "52ms")  # 4 times 2 ms become 104 + 4
            shortest = min(self.ping(5))
            self.assertEqual(self.lab.control("counters")["sites"][0]["up"]["passed"]["packets"], 20)
            self.assertEqual(self.lab.control("counters")["sites"][1]["down"]["cut"]["packets"], 5)
            return [near("shortest round trip", shortest, 0.108, 0.002)]
        within_tries(self, trial)

    def test_counters_are_those_of_the_interfaces(self):
        """Every byte that the kernel counted in a site, lossy link and strangers included."""
        self.start_lab("--sites", "3", "--rate", "20M", "--rtt", "10ms", "--loss", "1%")
        self.serve(2, "sink")
        self.serve(3, "echo")
        self.talk(1, "source", "10.77.0.2", PORT, 3, "bbr")
        self.talk(1, "ping", "10.77.0.3", PORT, 50, 0.001)
        self.talk(1, "ping", "10.77.0.99", PORT, 3, 0.001)
        for number, site in enumerate(self.lab.control("counters")["sites"], 1):
            sent = [*site["up"].values(), site["malformed"], site["no_such_site"]]
            received = [site["down"]["passed"]]
            lines = self.in_site(number, "cat", "/proc/net/dev").communicate(timeout=120)[0]
            line = next(line for line in lines.splitlines() if "wan0:" in line)
            fields = [int(field) for field in line.split(":")[1].split()]
            for counted, offset in ((received, 0), (sent, 8)):
                self.assertEqual([sum(count["bytes"] for count in counted),
                                  sum(count["packets"] for count in counted), 0, 0],
                                 fields[offset:offset + 4])
            self.assertEqual(site["no_such_site"]["packets"], 3 if number == 1 else 0)


class Life(LabTest):
    """How labs start and end."""

    def assert_holders_are_gone(self):
        """A namespace without a process and without a name is no more."""
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in self.lab.holders), 120,
                   "the end of the holders")

    def test_a_killed_lab_leaves_nothing(self):
        """No process, no namespace, its command included; and the folder can be used again."""
        lab = self.start_lab("--sites", "2", "--rate", "50M", "--", "sleep", "1000", verb="run")
        namespaces = {os.readlink(f"/proc/{pid}/ns/net") for pid in self.lab.holders}
        self.assertEqual(len(namespaces), 2)
        children = []

        def command_runs() -> bool:
            children[:] = Path(f"/proc/{lab.process.pid}/task/{lab.process.pid}/children").read_text().split()
            return len(children) == 3

        wait_until(command_runs, 120, "the lab's two holders and its command")
        lab.close()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), 120,
                   "the end of all children")
        for entry in Path("/proc").glob("[0-9]*/ns/net"):
            try:
                self.assertNotIn(os.readlink(entry), namespaces)
            except OSError:
                continue  # it has just ended
        self.start_lab("--sites", "2", "--rate", "50M")

    def test_a_lab_ends_with_its_command(self):
        """With its exit code, the counters as a table and a file, and no lab.json."""
        lab = subprocess.run(
            [WAN_LAB, "run", "--folder", self.folder / "lab", "--sites", "2", "--rate", "50M", "--",
             "sh", "-c", 'test -S "$(dirname "$FARSTEP_LAB")/control" && exit 7'],
            capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(lab.returncode, 7, lab.stderr)
        self.assertEqual(lab.stdout, "")
        self.assertIn("site 2 down", lab.stderr)
        self.assertEqual(sorted(os.listdir(self.folder / "lab")), ["counters.json", "spec.json"])
        counters = json.loads((self.folder / "lab" / "counters.json").read_text())
        self.assertEqual([site["site"] for site in counters["sites"]], [1, 2])

    def test_a_lab_ends_in_good_order_when_it_is_interrupted(self):
        """Counters and all."""
        lab = self.start_lab("--sites", "3", "--rate", "50M")
        lab.process.send_signal(signal.SIGINT)
        self.assertEqual(lab.process.wait(timeout=120), 0)
        self.assertIn("site 3 up", lab.log.read_text(encoding="utf-8"))
        self.assert_holders_are_gone()

    def test_mistakes_are_named(self):
        """With exit code 2, before anything starts."""
        folder = ("--folder", self.folder / "lab")
        self.start_lab("--sites", "2", "--rate", "50M")
        for arguments, words in {
                ("up", "--sites", "2", "--rate", "50M"): "a lab runs in this folder",
                ("up", "--sites", "0", "--rate", "50M"): "from 1 to 254",
                ("up", "--sites", "2", "--rate", "50M", "--subnet", "10.0.0.1"): "/24 network",
                ("up", "--sites", "2", "--rate", "fast"): "200M",
                ("cut", "3"): "from 1 to 2",
                ("exec", "--site", "3", "--", "true"): "sites 1 to 2",
        }.items():
            result = subprocess.run([WAN_LAB, arguments[0], *folder, *arguments[1:]],
                                    capture_output=True, text=True, timeout=10, check=False)
            self.assertEqual((result.returncode, words in result.stderr), (2, True), result.stderr)


class Training(LabTest):
    """farstep launch into a lab."""

    def test_two_sites_train_over_the_lab(self):
        """The exchange takes its time on the links, and its bytes pass them."""
        self.start_lab("--sites", "2", "--rate", "50M", "--rtt", "40ms")
        model = {"hidden": 128, "intermediate": 256}
        cluster = Cluster(self.folder, 2, {"model": model, "outer": {"rounds": 2},
                                           "evaluate": {"every_rounds": 0}})
        self.assert_success(cluster.launch("--lab", self.lab.file))
        report = cluster.report()
        counters = self.lab.control("counters")["sites"]
        for site, links in zip(report["sites"], counters):
            sent_bytes = report["wan_bytes_sent"] / 2
            # Each way is 20 ms and its bytes at 50 Mbit/s; a round has two ways, and a vote.
            self.assertGreater(site["wan_seconds"], 2 * 3 * 0.02 + 8 * sent_bytes / 50e6)
            passed_bytes = links["up"]["passed"]["bytes"]
            self.assertGreater(passed_bytes, sent_bytes)
            self.assertLess(passed_bytes, 1.3 * sent_bytes)

    def test_doctor_tells_the_rate_of_a_long_line(self):
        """Both ways, though TCP begins slowly: a first window of it gives 2.8 of 50 Mbit/s over 80 ms."""
        within_tries(self, self.rates_by_doctor)

    def rates_by_doctor(self) -> list[Figure]:
        """What each of two sites' doctors tells of the line, both ways."""
        self.start_lab("--sites", "2", "--rate", "50M", "--rtt", "80ms")
        coordinator = {"endpoint": endpoint_of("10.77.0.1", PORT)}
        cluster = Cluster(self.folder, 2, sites={
            index: {"network": {"address": f"10.77.0.{index + 1}"}, "coordinator": coordinator}
            for index in range(2)})
        doctors = [self.in_site(index + 1, FARSTEP, "doctor", cluster.folder / f"{name}.json",
                                "--peers", "--wait", 30, "--json")
                   for index, name in enumerate(cluster.names)]
        figures = []
        for name, doctor in zip(cluster.names, doctors):
            findings = json.loads(doctor.communicate(timeout=90)[0])["findings"]
            [link] = [finding for finding in findings if finding["subject"] == "link"]
            rates = re.findall(r"([0-9.]+) Mbit/s (?:to|from) it", link["text"])
            self.assertEqual(len(rates), 2, link)
            # A grade that is not "ok" follows from the rate.
            figures.append(Figure(f"good links of {name}", link["grade"] == "ok", at_least=1))
            figures += [Figure(f"Mbit/s by {name}", float(rate), 0.7 * 50, 50) for rate in rates]
        return figures

    def test_a_coordinator_of_its_own_lives_in_the_lab(self):
        """Beside the first site."""
        self.start_lab("--sites", "2", "--rate", "50M", "--rtt", "4ms")
        local = {"run": "", "coordinator": {"host": False}}
        cluster = Cluster(self.folder, 2, sites={0: local, 1: local})
        cluster.write_coordinator_config()
        self.assert_success(cluster.launch("--lab", self.lab.file))

    def test_a_lab_that_cannot_take_the_run_is_refused(self):
        """Nothing is started, and the message says what to do."""
        cluster = Cluster(self.folder, 3)
        labs = self.folder / "labs"
        labs.mkdir()
        for lab, words in ((labs / "missing.json", "start a lab with scripts/wan_lab"),
                           (labs / "small.json", "start one with --sites 3"),
                           (labs / "gone.json", "start it anew")):
            site = {"address": "10.77.0.1", "interface": "wan0", "pid": 1 << 30}
            if lab.stem != "missing":
                num_sites = 2 if lab.stem == "small" else 3
                lab.write_text(json.dumps({"sites": [site] * num_sites, "control": "none"}))
            result = farstep("launch", cluster.folder, "--lab", lab)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(words, result.stderr)
            self.assertFalse((cluster.output / "node1" / "console.txt").exists())


if __name__ == "__main__":
    unittest.main()
