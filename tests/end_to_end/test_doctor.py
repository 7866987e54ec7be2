"""`farstep doctor` with real processes: sites that are in order, and each fault."""

import json
import os
import shutil
import signal
import socket
import subprocess
import unittest
from pathlib import Path
from unittest import mock

from cluster import DATA, FARSTEP, Cluster, ClusterTest, farstep, wait_until
from ports import endpoint_of, has_ipv6

CLOCK_LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
OF_ALL = {"program", "keys", "run", "model", "memory", "devices", "profile", "coordinator",
          "network", "output", "data", "data of run", "clock", "cores", "work", "disk", "gpus"}


class Doctor(ClusterTest):
    """One site alone, and two that meet."""

    def start_doctor(self, name: str, *options: object,
                     environment: dict | None = None) -> subprocess.Popen:
        """Starts it at a site; its JSON comes on stdout."""
        process = subprocess.Popen(
            [str(FARSTEP), "doctor", str(self.folder / f"{name}.json"), "--json",
             *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | (environment or {}))
        self.processes.append(process)
        return process

    def end_of(self, process: subprocess.Popen, exit_code: int = 0) -> list[dict]:
        """Waits for it, and returns its findings."""
        out, error = process.communicate(timeout=90)
        self.assertEqual(process.returncode, exit_code, out + error)
        report = json.loads(out)
        self.assertEqual(report["exit_code"], exit_code)
        self.assertEqual(out.count("\n"), 1)
        return report["findings"]

    def meet(self, cluster: Cluster, exit_codes: tuple = (0, 0), waits: tuple = (20, 20),
             environments: tuple = (None, None)) -> list[list[dict]]:
        """Runs it at both sites at the same time; returns the findings of each."""
        started = [self.start_doctor(name, "--peers", "--seconds", 0.2, "--wait", wait,
                                     environment=environment)
                   for name, wait, environment in zip(cluster.names, waits, environments)]
        return [self.end_of(process, code) for process, code in zip(started, exit_codes)]

    def only(self, findings: list[dict], grade: str, subject: str, *parts: str) -> dict:
        """The only finding of that grade; it has the subject and the parts of the text."""
        found = [finding for finding in findings if finding["grade"] == grade]
        self.assertEqual([finding["subject"] for finding in found], [subject], found)
        for part in parts:
            self.assertIn(part, found[0]["text"])
        return found[0]

    def fault(self, exit_code: int, subject: str, *parts: str, site: str = "node1",
              settings: tuple = ()) -> None:
        """One site has one fault."""
        options = [option for setting in settings for option in ("--set", setting)]
        findings = self.end_of(self.start_doctor(site, *options), exit_code)
        finding = self.only(findings, "fault", subject, *parts)
        self.assertEqual(finding["exit_code"], exit_code)

    def test_one_site_in_order(self):
        """Every subject has a line, nothing is a fault, and no file is left."""
        Cluster(self.folder, 2, secure=False)
        before = sorted(self.folder.rglob("*"))
        findings = self.end_of(self.start_doctor("node1"))
        self.assertEqual({finding["subject"] for finding in findings}, OF_ALL)
        self.assertEqual(sorted(self.folder.rglob("*")), before)
        lines = farstep("doctor", self.folder / "node1.json")
        self.assert_success(lines)
        self.assertEqual([line.split()[1] for line in lines.stdout.splitlines()],
                         [finding["subject"].split()[0] for finding in findings])
        # It makes all that `farstep check` makes.
        checked = farstep("check", self.folder / "node1.json")
        self.assertTrue({line for line in checked.stdout.splitlines() if "free" not in line}
                        <= set(lines.stdout.splitlines()))

    def two_sites_in_order(self, secure: bool):
        """Both find the way to each other, and know the run though only one has the file."""
        cluster = Cluster(self.folder, 2, sites={1: {"run": ""}}, secure=secure)
        both = self.meet(cluster)
        for name, peer, findings in zip(cluster.names, reversed(cluster.names), both):
            found = {finding["subject"]: finding for finding in findings}
            self.assertTrue({*OF_ALL, "link", "same data"} <= set(found), found)
            self.assertFalse([finding for finding in findings
                              if finding["grade"] in ("fault", "later")], name)
            self.assertRegex(found["link"]["text"],
                             rf"^{peer}: connects; round trip [\d.]+ ms, [\d.]+ Mbit/s to it, "
                             r"[\d.]+ Mbit/s from it")
            self.assertTrue([finding for finding in findings if finding["subject"] == "clock"
                             and f"that of {peer} is 0." in finding["text"]], findings)

    def test_two_sites_without_keys(self):
        """Over plain connections."""
        self.two_sites_in_order(secure=False)

    def test_two_sites_with_keys(self):
        """Over the secure ports of the run."""
        self.two_sites_in_order(secure=True)

    def test_a_site_behind_a_router_with_keys(self):
        """The second site has no address, as behind NAT: it connects, and both know the link."""
        cluster = Cluster(self.folder, 2, sites={1: {"network": {"address": ""}}}, secure=True)
        for findings in self.meet(cluster):
            self.assertEqual(len([finding for finding in findings
                                  if finding["subject"] == "link"]), 1)

    def test_a_coordinator_that_is_away(self):
        """Alone that is a warning, as nobody is there before a run; with --peers a fault."""
        Cluster(self.folder, 2, secure=False)
        findings = self.end_of(self.start_doctor("node2"))
        self.only([finding for finding in findings if finding["subject"] == "answer"], "warning",
                  "answer", "nobody listens there")
        findings = self.end_of(self.start_doctor("node2", "--peers", "--wait", 1), 4)
        self.only(findings, "fault", "peers", "node2 could not join within 1 s")
        answer, = [finding for finding in findings if finding["subject"] == "answer"]
        self.assertIn("nobody listens there", answer["text"])

    def test_a_peer_that_does_not_come(self):
        """The host waits as long as it is told, and names the site."""
        Cluster(self.folder, 2, secure=False)
        findings = self.end_of(self.start_doctor("node1", "--peers", "--wait", 1), 4)
        self.only(findings, "fault", "peers", "node2")

    def test_a_wrong_port_of_the_coordinator(self):
        """Who listens there is no coordinator."""
        Cluster(self.folder, 2, secure=False)
        with socket.socket() as stranger:
            stranger.bind(("127.0.0.1", 0))
            stranger.listen()
            port = stranger.getsockname()[1]
            self.fault(4, "answer", "is no coordinator", site="node2",
                       settings=(f"coordinator.endpoint={endpoint_of('127.0.0.1', port)}",))

    def test_a_coordinator_that_answers(self):
        """A coordinator that waits for its sites answers a doctor that asks it alone."""
        for secure in (False, True):
            with self.subTest(secure=secure):
                self.take_new_folder()
                cluster = Cluster(self.folder, 2, secure=secure)
                host = cluster.start("node1")
                self.processes.append(host)
                wait_until(lambda: "waits for node2" in cluster.log("node1"), 120,
                           "the coordinator listens")
                findings = self.end_of(self.start_doctor("node2"))
                self.only([finding for finding in findings if finding["subject"] == "answer"],
                          "ok", "answer")
                # One that trains and one that looks only would wait for each other.
                refused = self.end_of(self.start_doctor("node2", "--peers", "--wait", 20), 2)
                self.only(refused, "fault", "peers", "train", "doctor")
                host.send_signal(signal.SIGINT)
                self.assertEqual(host.wait(timeout=120), 130, cluster.log("node1"))

    def test_a_port_in_use(self):
        """The site's own port, and that of the coordinator that it hosts."""
        cluster = Cluster(self.folder, 2, secure=False)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.fault(4, "coordinator", "in use", f":{port}",
                       settings=(f"coordinator.endpoint={endpoint_of('127.0.0.1', port)}",))
            # Its data port number 2 is the taken one.
            self.fault(4, "network", "choose another port",
                       settings=(f"network.port={port - 2}",))
            # The peer learns it as well.
            config = json.loads((self.folder / "node2.json").read_text(encoding="utf-8"))
            config["network"]["port"] = port
            (self.folder / "node2.json").write_text(json.dumps(config), encoding="utf-8")
            ours, theirs = self.meet(cluster, (4, 4))
            self.only(ours, "fault", "peers", "node2 cannot listen", str(port))
            self.assertIn("network", [finding["subject"] for finding in theirs
                                      if finding["grade"] == "fault"])

    def test_an_address_that_the_peer_cannot_reach(self):
        """Both name the link, and what to set."""
        # An address of another family, as a packet filter is not to be had.
        if not has_ipv6():
            self.skipTest("no IPv6 loopback")
        cluster = Cluster(self.folder, 2, sites={1: {"network": {"address": "::1"}}}, secure=False)
        for findings in self.meet(cluster, (2, 2)):
            faults = [finding["text"] for finding in findings if finding["grade"] == "fault"]
            self.assertTrue(any("node2 advertises ::1, which is IPv6" in text for text in faults), faults)
            self.assertTrue(all("network.address" in text for text in faults), faults)

    def test_wrong_keys(self):
        """Of another site, of another authority, readable by others, revoked and expired."""
        cluster = Cluster(self.folder, 2, secure=True)
        self.fault(2, "keys", "this is site node1", settings=("network.keys=keys/sites/node2",))
        key = self.folder / "keys" / "sites" / "node1" / "site.key"
        key.chmod(0o644)
        self.fault(3, "keys", "chmod 600")
        key.chmod(0o600)
        made = farstep("keys", "--folder", self.folder / "others", "--run", "test", "--sites",
                       "node1", "node2")
        self.assert_success(made)
        with open(self.folder / "node2.json", encoding="utf-8") as file:
            config = json.load(file)
        config["network"]["keys"] = "others/sites/node2"
        (self.folder / "node2.json").write_text(json.dumps(config), encoding="utf-8")
        # The host hears of nobody, as strangers are not let in.
        ours, theirs = self.meet(cluster, (4, 4), waits=(12, 3))
        self.only(ours, "fault", "peers", "node2")
        faults = [finding for finding in theirs if finding["grade"] == "fault"]
        self.assertEqual([finding["subject"] for finding in faults], ["peers", "answer"])
        self.assertIn("one authority", faults[1]["text"])
        revoked = farstep("keys", "--folder", self.folder / "keys", "--revoke", "node1")
        self.assert_success(revoked)
        self.fault(3, "keys", "revoked")

    @unittest.skipUnless(CLOCK_LIBRARY, "there is no libfaketime")
    def test_expired_keys_and_clocks_that_differ(self):
        """A clock two minutes ahead is seen at both sites; two years on, keys have expired."""
        cluster = Cluster(self.folder, 2, secure=True)
        ahead = {"LD_PRELOAD": str(CLOCK_LIBRARY), "FAKETIME": "+120s",
                 "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        ours, theirs = self.meet(cluster, (2, 2), environments=(None, ahead))
        self.only(ours, "fault", "clock", "node2 is 1", "ahead of", "NTP")
        self.only(theirs, "fault", "clock", "node1 is 1", "behind")
        expired = self.end_of(
            self.start_doctor("node1", environment=ahead | {"FAKETIME": "+800d"}), 3)
        self.only(expired, "fault", "keys", "expired", "farstep keys")

    @unittest.skipUnless(CLOCK_LIBRARY, "there is no libfaketime")
    def test_a_clock_that_makes_a_certificate_too_early(self):
        """node1's clock is five days behind, and node2's certificate is of today: both say so, whoever refuses."""
        clock = {"LD_PRELOAD": str(CLOCK_LIBRARY), "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        behind, right = clock | {"FAKETIME": "-5d"}, {}
        for host, guest in (("node1", "node2"), ("node2", "node1")):
            with self.subTest(host=host), mock.patch.dict(os.environ):
                self.take_new_folder()
                make = ("keys", "--folder", self.folder / "keys", "--sites")
                os.environ.update(clock | {"FAKETIME": "-10d"})
                self.assert_success(farstep(*make, "node1", "node2", "--run", "test"))
                del os.environ["LD_PRELOAD"]
                shutil.rmtree(self.folder / "keys" / "sites" / "node2")
                self.assert_success(farstep(*make, "node2"))
                cluster = Cluster(self.folder, 2, secure=True, sites={
                    index: {"coordinator": {"host": name == host}} for index, name in enumerate(("node1", "node2"))})
                os.environ.update(behind if host == "node1" else right)
                process = cluster.start(host)
                self.processes.append(process)
                wait_until(lambda: "waits for" in cluster.log(host), 120, "the coordinator listens")
                os.environ.pop("LD_PRELOAD", None)
                asked = self.start_doctor(guest, environment=behind if guest == "node1" else right)
                sides = ("behind that", "ahead of that")
                ours, theirs = sides if host == "node1" else reversed(sides)
                self.only(self.end_of(asked, 4), "fault", "answer", f"this clock is 120.0 h {theirs}")
                wait_until(lambda: f"this clock is 120.0 h {ours}" in cluster.log(host), 120,
                           "the host says why nobody comes")
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(timeout=120), 130, cluster.log(host))

    def test_folders_that_cannot_be_used(self):
        """Records that cannot be written, and data that is missing or damaged."""
        Cluster(self.folder, 2, secure=False)
        findings = self.end_of(self.start_doctor("node1", "--set", "output=/proc/out"), 2)
        faults = [finding["text"] for finding in findings if finding["subject"] == "output"]
        self.assertIn("name another folder", faults[0])
        self.fault(3, "data", "farstep tokenize", settings=("data=nowhere",))
        data = self.folder / "data"
        shutil.copytree(DATA, data)
        shard = next(data.glob("train-*.tokens"))
        content = bytearray(shard.read_bytes())
        content[-1] ^= 1
        shard.write_bytes(content)
        self.fault(3, "data", shard.name, settings=("data=data",))

    def test_other_data_at_the_peer(self):
        """Both see that the digests differ."""
        data = self.folder / "data"
        data.mkdir()
        text = self.folder / "text.txt"
        text.write_text("A short text, and another one. " * 2000, encoding="utf-8")
        made = farstep("tokenize", text, "--output", data / "tokens", "--tokenizer",
                       DATA / "tokenizer.model")
        self.assert_success(made)
        cluster = Cluster(self.folder, 2, sites={1: {"data": str(data / "tokens")}}, secure=False)
        for findings in self.meet(cluster, (3, 3)):
            self.only(findings, "fault", "same data", "copy one")

    def test_too_little_memory(self):
        """A model that no machine holds."""
        Cluster(self.folder, 2, secure=False)
        findings = self.end_of(self.start_doctor(
            "node1", "--set", "run.model.layers=1000", "--set", "run.model.hidden=65536",
            "--set", "run.model.heads=64", "--set", "run.model.kv_heads=64"), 2)
        faults = {finding["subject"]: finding["text"] for finding in findings
                  if finding["grade"] == "fault"}
        self.assertIn("a smaller model", faults["memory"])

    def test_the_memory_by_kind_is_that_of_a_process(self):
        """The sum is what a real run takes at most, files aside."""
        Cluster(self.folder, 1, secure=False)
        settings = ("--set", "run.plan.base_batch=1500", "--set", "run.plan.base_steps=1",
                    "--set", "run.plan.micro_batch=1500", "--set", "run.plan.policy=uniform",
                    "--set", "run.outer.rounds=2")
        findings = self.end_of(self.start_doctor("node1", *settings))
        memory = next(finding for finding in findings if finding["subject"] == "memory")
        kinds = memory["figures"]["host"]
        self.assertGreater(kinds["activations_bytes"], sum(kinds.values()) / 3)
        process = subprocess.Popen([str(FARSTEP), "train", "--config", str(self.folder / "node1.json"), *settings],
                                   stderr=subprocess.DEVNULL)
        self.processes.append(process)
        most = 0
        while process.poll() is None:  # arrays stay until the process ends
            try:
                status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
                most = max([most, *(int(line.split()[1]) * 1024 for line in status.splitlines()
                                    if line.startswith("RssAnon"))])
            except (FileNotFoundError, ProcessLookupError):
                break
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertAlmostEqual(sum(kinds.values()) / most, 1, delta=0.2)

    def own_group(self) -> Path:
        """A control group that may use one core, of the version that this machine has for cores."""
        version_1 = Path("/sys/fs/cgroup/cpu")
        group = (version_1 if version_1.exists() else Path("/sys/fs/cgroup")) / self.folder.name
        try:
            group.mkdir()
            self.addCleanup(group.rmdir)
            if version_1.exists():
                (group / "cpu.cfs_quota_us").write_text("100000")
            else:
                (group / "cpu.max").write_text("100000 100000")
        except OSError:
            self.skipTest("this root may not make control groups")
        return group

    def test_a_quota_of_cores(self):
        """A container's: two threads are warned of, and `init` writes one."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("this needs two cores")
        Cluster(self.folder, 2, secure=False)
        group = self.own_group()
        within = f'echo $$ > {group}/cgroup.procs && exec "$@"'
        done = subprocess.run(["sh", "-c", within, "sh", FARSTEP, "doctor", self.folder / "node1.json", "--json",
                               "--set", "devices[0].threads=2"],
                              capture_output=True, text=True, timeout=90, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        # Not of the clock, which no test can set.
        found = [finding for finding in json.loads(done.stdout)["findings"] if finding["subject"] != "clock"]
        self.only(found, "warning", "cores", "have 2 threads", "may keep 1 core busy",
                  "give the devices 1 thread in all")
        made = subprocess.run(["sh", "-c", within, "sh", FARSTEP, "init", "--run", "mine", "--sites", "a=127.0.0.1",
                               "b=127.0.0.1", "--data", DATA], capture_output=True, text=True, timeout=60,
                              check=False, cwd=self.folder, stdin=subprocess.DEVNULL)
        self.assert_success(made)
        self.assertEqual(json.loads((self.folder / "mine/a.json").read_text())["devices"][0]["threads"], 1)

    def test_a_full_disk(self):
        """Checkpoints that do not fit the disk of `output`."""
        if os.geteuid() != 0 or not shutil.which("unshare"):
            self.skipTest("a small disk needs root")
        Cluster(self.folder, 2, secure=False)
        disk = self.folder / "out"
        disk.mkdir()
        script = (f"mount -t tmpfs -o size=65536 tmpfs {disk} && "
                  f"exec {FARSTEP} doctor {self.folder}/node1.json --json")
        if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
            self.skipTest("this root may not make mount namespaces")
        process = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.processes.append(process)
        self.only(self.end_of(process, 3), "fault", "disk", "make room")

    def test_it_ends_when_asked(self):
        """SIGINT while it waits for the others: exit code 130, and the findings so far."""
        Cluster(self.folder, 2, secure=False)
        process = subprocess.Popen([str(FARSTEP), "doctor", str(self.folder / "node1.json"),
                                    "--peers", "--wait", "300"], stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        # The last line before it meets the others.
        for line in process.stdout:
            if line.split()[1] == "clock":
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130)

    def test_bad_arguments(self):
        """A config that is not there, and a wait of no time."""
        Cluster(self.folder, 1, secure=False)
        for arguments, part in ((["nowhere.json"], "nowhere.json"),
                                ([self.folder / "node1.json", "--wait", 0], "wait")):
            result = farstep("doctor", *arguments)
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn(part, result.stderr)


if __name__ == "__main__":
    unittest.main()
