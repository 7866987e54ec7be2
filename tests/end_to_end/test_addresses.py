"""Sites by IPv6, by names, by names of both families of which one leads nowhere, and by names that come late."""

import json
import os
import shutil
import subprocess
import unittest
import urllib.request
from pathlib import Path

from cluster import DATA, FARSTEP, Cluster, ClusterTest, farstep, wait_until
from ports import endpoint_of, free_port, has_ipv6, port_of
from test_unreachable import enter_new_network

NAME = "seoul.example"
# A run whose sites take long enough to be started one after the other.
RUN = {"outer": {"rounds": 2}, "plan": {"base_steps": 2, "base_batch": 1}, "evaluate": {"every_rounds": 0}}
AWAY = {"coordinator": {"host": False}}
SILENT = """
table ip6 silent {{
  chain input {{
    type filter hook input priority 0; policy accept;
    tcp dport {port} drop
  }}
}}
"""


def with_hosts(hosts: Path, *words: object) -> list[str]:
    """The command line that becomes these words where /etc/hosts is that file."""
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(hosts),
            *map(str, words)]


def obstacle_to_hosts() -> str:
    """What this machine lacks for a file of hosts of its own; empty: nothing."""
    if os.geteuid() != 0:
        return "a file of hosts of its own needs root"
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        return "this root may not make mount namespaces"
    return ""


class NamedCluster(Cluster):
    """A cluster whose second site has an /etc/hosts of its own, and finds the coordinator by NAME."""

    def __init__(self, folder: Path, hosts: str, run: dict, secure: bool, **changes):
        super().__init__(folder, 2, RUN | run, secure=secure, **changes)
        self.hosts = folder / "hosts"
        self.hosts.write_text(hosts, encoding="ascii")
        path = folder / "node2.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        config["coordinator"]["endpoint"] = endpoint_of(NAME, port_of(self.endpoint))
        path.write_text(json.dumps(config), encoding="utf-8")

    def start(self, name: str, *options: str) -> subprocess.Popen:
        """As Cluster's, the second site with its own hosts."""
        if name != "node2":
            return super().start(name, *options)
        with open(self.folder / f"{name}.txt", "w", encoding="utf-8") as log:
            return subprocess.Popen(with_hosts(self.hosts, FARSTEP, "train", "--config",
                                               self.folder / f"{name}.json", *options), stdout=log, stderr=log)


class Addresses(ClusterTest):
    """Runs of two sites, without keys and with them."""

    def each_way(self):
        """Whether the sites have keys: both, each in a folder of its own."""
        for secure in (False, True):
            with self.subTest(secure=secure):
                yield secure, self.make_folder(f"run{len(list(self.folder.iterdir()))}")

    def need_ipv6(self):
        """Ends the test where there is no IPv6."""
        if not has_ipv6():
            self.skipTest("no IPv6 loopback")

    def need_hosts(self):
        """Ends the test where no process can have its own hosts."""
        if obstacle := obstacle_to_hosts():
            self.skipTest(obstacle)

    def need_network(self):
        """Gives the test a network of its own, or ends it."""
        if obstacle := enter_new_network():
            self.skipTest(obstacle)

    def start_coordinator(self, cluster: Cluster, **changes) -> subprocess.Popen:
        """Starts `farstep coordinator`, whose process ends with the test."""
        config = cluster.write_coordinator_config(**changes)
        with open(cluster.folder / "coordinator.txt", "w", encoding="utf-8") as log:
            self.processes.append(subprocess.Popen([str(FARSTEP), "coordinator", "--config", str(config)],
                                                   stdout=log, stderr=log))
        return self.processes[-1]

    def assert_trains(self, cluster: Cluster):
        """Both sites train to the end of the run, with one theta_global."""
        self.assert_end(cluster, self.start_all(cluster))
        self.assert_one_theta(cluster)

    def doctor(self, cluster: Cluster, site: str, *options: str, within: list[str] | None = None) -> list[dict]:
        """What `farstep doctor` finds at a site. `within`: the words before the command."""
        words = [*(within or []), str(FARSTEP), "doctor", str(cluster.folder / f"{site}.json"), "--json", *options]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        self.assertTrue(done.stdout, done.stderr)
        return json.loads(done.stdout)["findings"]

    def assert_found(self, findings: list[dict], grade: str, subject: str, *parts: str):
        """One of the findings has that grade and subject, and all parts in its text."""
        texts = [finding["text"] for finding in findings
                 if (finding["grade"], finding["subject"]) == (grade, subject)]
        self.assertTrue(any(all(part in text for part in parts) for text in texts), findings)

    def test_two_sites_by_ipv6(self):
        """The coordinator and all links."""
        self.need_ipv6()
        for secure, folder in self.each_way():
            cluster = Cluster(folder, 2, RUN, secure=secure, address="::1")
            self.assertIn("tcp://[::1]:", cluster.endpoint)
            self.assert_trains(cluster)
            for site in cluster.names:
                result = farstep("check", folder / f"{site}.json")
                self.assert_success(result)
                self.assertIn("[::1]:", result.stdout)

    def test_a_coordinator_of_its_own_by_ipv6(self):
        """One that listens at all addresses, which a site reaches by each family."""
        self.need_ipv6()
        for secure, folder in self.each_way():
            cluster = Cluster(folder, 2, RUN, {0: AWAY, 1: AWAY | {"network": {"address": "127.0.0.1"}}},
                              secure=secure)
            port = port_of(cluster.endpoint)
            for name, address in zip(cluster.names, ("::1", "127.0.0.2")):
                path = folder / f"{name}.json"
                config = json.loads(path.read_text(encoding="utf-8"))
                config["coordinator"]["endpoint"] = endpoint_of(address, port)
                path.write_text(json.dumps(config), encoding="utf-8")
            coordinator = self.start_coordinator(cluster, endpoint=endpoint_of("*", port))
            self.assert_trains(cluster)
            self.assert_end(cluster, {"coordinator": coordinator})

    def test_a_machine_without_ipv6(self):
        """All addresses are those of IPv4 there; an IPv6 address says why it cannot be."""
        self.need_network()
        Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1", encoding="ascii")
        for secure, folder in self.each_way():
            cluster = Cluster(folder, 2, RUN, secure=secure)
            path = folder / "node1.json"
            config = json.loads(path.read_text(encoding="utf-8"))
            config["coordinator"]["endpoint"] = endpoint_of("*", port_of(cluster.endpoint))
            path.write_text(json.dumps(config), encoding="utf-8")
            self.assert_trains(cluster)
            self.assert_found(self.doctor(cluster, "node2", "--set", "coordinator.endpoint=tcp://[2001:db8::1]:7400"),
                              "fault", "answer", "this machine has no way to IPv6")

    def test_a_name_of_which_one_address_refuses(self):
        """The first address is IPv6, and nobody listens there."""
        self.need_ipv6()
        self.need_hosts()
        for secure, folder in self.each_way():
            cluster = NamedCluster(folder, f"::1 {NAME}\n127.0.0.1 {NAME}\n", {}, secure)
            self.assert_trains(cluster)

    def test_a_name_of_which_one_address_is_silent(self):
        """A firewall drops what goes to the first address. `doctor` says that it costs time."""
        self.need_hosts()
        self.need_network()
        self.need_ipv6()
        for secure, folder in self.each_way():
            cluster = NamedCluster(folder, f"::1 {NAME}\n127.0.0.1 {NAME}\n", {}, secure)
            port = port_of(cluster.endpoint)
            subprocess.run(["nft", "-f", "-"], input=SILENT.format(port=port), text=True, check=True, timeout=10)
            host = self.start_site(cluster, "node1")
            wait_until(lambda cluster=cluster: "waits for node2" in cluster.log("node1"), 120, "the coordinator")
            self.assert_found(self.doctor(cluster, "node2", within=with_hosts(cluster.hosts)), "ok", "answer",
                              NAME, f"[::1]:{port}: timed out")
            self.assert_end(cluster, {"node2": self.start_site(cluster, "node2"), "node1": host})
            subprocess.run(["nft", "delete", "table", "ip6", "silent"], check=True, timeout=10)

    def test_a_name_that_comes_late(self):
        """A site asks for it while it joins, and says so; one that never comes ends with the remedy."""
        self.need_hosts()
        for secure, folder in self.each_way():
            cluster = NamedCluster(folder, "127.0.0.1 localhost\n", {}, secure)
            started = {"node2": self.start_site(cluster, "node2")}
            unknown = f"no address is known for {NAME}"
            wait_until(lambda cluster=cluster: f"answer; is it running" in cluster.log("node2")
                       and cluster.log("node2").count(unknown) >= 2, 120, "it has looked for the name")
            with open(cluster.hosts, "a", encoding="ascii") as hosts:
                hosts.write(f"127.0.0.1 {NAME}\n")
            started["node1"] = self.start_site(cluster, "node1")
            self.assert_end(cluster, started)
            self.assert_one_theta(cluster)
            cluster.hosts.write_text("127.0.0.1 localhost\n", encoding="ascii")
            self.assert_found(self.doctor(cluster, "node2", within=with_hosts(cluster.hosts)), "fault", "answer",
                              unknown)
            late = self.start_site(cluster, "node2", "--set", f"output={folder}/late",
                                   "--set", "run.deadlines.join_seconds=1",
                                   "--set", "run.deadlines.connect_seconds=1")
            self.assert_end(cluster, {"node2": late}, 4)
            self.assertRegex(cluster.log("node2"), f"could not join within 1 s: .*{unknown}")

    def test_a_name_that_leads_to_its_own_machine_alone(self):
        """As Debian has it for a machine's own name: `doctor` warns, with the addresses that it has."""
        self.need_hosts()
        for secure, folder in self.each_way():
            cluster = NamedCluster(folder, f"127.0.0.1 localhost\n127.0.1.1 {NAME}\n", {}, secure)
            path = folder / "node1.json"
            config = json.loads(path.read_text(encoding="utf-8"))
            config["coordinator"]["endpoint"] = endpoint_of(NAME, port_of(cluster.endpoint))
            config["network"]["address"] = NAME
            path.write_text(json.dumps(config), encoding="utf-8")
            for site in cluster.names:
                findings = self.doctor(cluster, site, within=with_hosts(cluster.hosts))
                self.assert_found(findings, "warning", "coordinator", f"{NAME} is 127.0.1.1 here",
                                  "this machine has 127.0.0.1 (lo)")
            self.assert_found(self.doctor(cluster, "node1", within=with_hosts(cluster.hosts)), "warning", "network",
                              f"network.address: {NAME} is 127.0.1.1 here")

    def test_sites_of_different_families(self):
        """Without keys they cannot meet, and both say so; with keys it is enough that one reaches the other."""
        self.need_ipv6()
        for secure, folder in self.each_way():
            cluster = Cluster(folder, 2, RUN, {1: {"network": {"address": "::1"}}}, secure=secure)
            if secure:
                self.assert_trains(cluster)
                continue
            self.assert_end(cluster, self.start_all(cluster), 2)
            for name in cluster.names:
                self.assertIn("node2 advertises ::1, which is IPv6, and node1 advertises 127.0.0.1", cluster.log(name))

    def test_each_way_not_to_answer(self):
        """Who refuses, who is silent, and a port for root: each has its own words."""
        self.need_network()
        cluster = Cluster(self.folder, 2, RUN, secure=False)
        port = port_of(cluster.endpoint)
        self.assert_found(self.doctor(cluster, "node2"), "warning", "answer", "nobody listens at that port")
        subprocess.run(["nft", "-f", "-"], input=SILENT.replace("ip6", "ip").format(port=port), text=True, check=True,
                       timeout=10)
        self.assert_found(self.doctor(cluster, "node2"), "fault", "answer", "timed out", f"drops TCP port {port}")
        if shutil.which("setpriv"):
            within = ["setpriv", "--bounding-set=-net_bind_service", "--inh-caps=-net_bind_service"]
            findings = self.doctor(cluster, "node1", "--set", "network.port=80", within=within)
            self.assert_found(findings, "fault", "network", "ports below 1024 are for root")

    def test_init_and_the_page_by_ipv6(self):
        """`init` writes brackets where they belong, its run trains, and its page says where it is."""
        self.need_ipv6()
        port = free_port()
        for secure, folder in self.each_way():
            made = farstep("init", "--output", folder, "--force", "--run", "mine", "--sites", f"a=[::1]:{port}", "b=::1",
                           "--data", DATA, "--preset", "tiny", "--rounds", 1, "--base-steps", 1, "--base-batch", 1,
                           "--sequence-length", 16, "--threads", 1, *([] if secure else ["--no-keys"]))
            self.assert_success(made)
            self.assertIn(f"tcp://[::1]:{port}", (folder / "b.json").read_text(encoding="utf-8"))
            self.assert_success(farstep("launch", folder))
            self.look_at_page(folder / "runs")
        for wrong, remedy in (("a=::1:7440", "write [::1]:7440"), ("a=::", "any address"), ("a=fe80::1%eth0", "fd00::5")):
            refused = farstep("init", "--run", "mine", "--sites", wrong, "--data", DATA)
            self.assertEqual(refused.returncode, 2, refused.stdout)
            self.assertIn(remedy, refused.stderr)

    def look_at_page(self, folder: Path):
        """The page of a run at an IPv6 address answers to that, and to no name."""
        page = subprocess.Popen([str(FARSTEP), "watch", str(folder), "--listen", "[::1]:0"], stdout=subprocess.PIPE,
                                text=True)
        self.processes.append(page)
        url = page.stdout.readline().strip()
        self.assertRegex(url, r"^http://\[::1\]:[0-9]+/$")
        with urllib.request.urlopen(url, timeout=30) as answer:
            self.assertEqual(answer.status, 200)
        stranger = urllib.request.Request(url, headers={"Host": f"{NAME}:80"})
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(stranger, timeout=30)
        self.assertEqual(refused.exception.code, 403)
        refused.exception.close()


if __name__ == "__main__":
    unittest.main()
