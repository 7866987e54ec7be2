"""The page of a run: `farstep watch`, --watch, what wrong requests get, and the coordinator's copies."""

import contextlib
import http.client
import http.cookiejar
import http.server
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.request
from pathlib import Path

from cluster import FARSTEP, REPOSITORY, Cluster, ClusterTest, by_event, farstep, free_port, wait_until

LONG = {"outer": {"rounds": 100000}, "plan": {"base_steps": 10, "base_batch": 1},
        "evaluate": {"every_rounds": 0}}
# The page is in a process of the run, so it must be read before the run ends.
SEVERAL_SECONDS = {"outer": {"rounds": 60}, "evaluate": {"every_rounds": 20}}
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL},?)*)\}})? (\S+)")


def read(address: str, path: str) -> str:
    """The body that the server answers with."""
    with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
        return answer.read().decode("utf-8")


def state_of(address: str) -> dict | None:
    """What the page shows; None while nobody listens."""
    with contextlib.suppress(OSError):
        return json.loads(read(address, "/api/status"))
    return None


def metrics_of(text: str) -> dict[tuple[str, str], float]:
    """The samples by name and labels, read strictly by the text format's rules."""
    samples, types, current = {}, {}, None
    assert text.endswith("\n")
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            current = line.split(" ")[2]
            assert current not in types, f"{current} comes twice"
            types[current] = None
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current and kind in ("gauge", "counter"), line
            assert (kind == "counter") == name.endswith("_total"), line
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match and match[1] == current and types[current], line
            key = (match[1], match[2] or "")
            assert key not in samples, line
            samples[key] = float(match[3])
    return samples


def first_line(port: int, request: bytes) -> str:
    """The first line of the answer to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request)
        return connection.makefile("rb").readline().decode("latin-1").strip()


def connects(port: int) -> bool:
    """Whether somebody listens there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10):
        return True
    return False


def memory_kib(process: int) -> int:
    """The resident memory of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])


class FolderProxy(http.server.BaseHTTPRequestHandler):
    """A proxy that serves a page in the folder /mine, as one that others share."""

    page: int  # the page's port

    def do_GET(self):
        if not self.path.startswith("/mine/"):
            self.send_error(404)
            return
        behind = http.client.HTTPConnection("127.0.0.1", self.page, timeout=30)
        behind.request("GET", self.path.removeprefix("/mine"), headers=dict(self.headers))
        answer = behind.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing: the test has its own words."""


class Watch(ClusterTest):
    """The figures of the page are those of the report, and no request harms the run."""

    def watch(self, *arguments: object) -> str:
        """Starts `farstep watch` on a free port; returns the address."""
        address = f"127.0.0.1:{free_port()}"
        page = subprocess.Popen([str(FARSTEP), "watch", *map(str, arguments), "--listen", address],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(page)
        wait_until(lambda: state_of(address), 120, "the page")
        return address

    def check_page(self, address: str, folder: Path):
        """What is served of a run that is over equals its report."""
        wait_until(lambda: state_of(address).get("is_over"), 120, "the end of the run on the page")
        result = farstep("report", folder, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(json.loads(read(address, "/api/report")), report)
        state = state_of(address)
        samples = metrics_of(read(address, "/metrics"))
        self.assertEqual(state["rounds_done"], report["rounds"])
        self.assertEqual(samples["farstep_rounds_done", ""], report["rounds"])
        self.assertEqual(samples["farstep_validation_loss", ""], report["final_loss"])
        for shown, site in zip(state["sites"], report["sites"], strict=True):
            labels = f'site="{site["site"]}"'
            for figure in ("site", "steps", "tokens", "compute_seconds", "idle_fraction"):
                self.assertEqual(shown[figure], site[figure])
            self.assertEqual(samples["farstep_site_tokens_total", labels], site["tokens"])
            self.assertEqual(samples["farstep_site_compute_seconds_total", labels],
                             site["compute_seconds"])

    def test_the_page_of_a_launched_run_has_the_figures_of_its_report(self):
        """One address during the run by `launch`, another one by `watch` from before its begin."""
        cluster = Cluster(self.folder, 2, SEVERAL_SECONDS)
        address = f"127.0.0.1:{free_port()}"
        before = self.watch(cluster.output)
        launcher = subprocess.Popen([str(FARSTEP), "launch", str(cluster.folder), "--watch", address],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(launcher)
        state = wait_until(lambda: (state_of(address) or {}).get("run"), 120, "the run on the page")
        self.assertEqual(state, "test")
        self.assertEqual(launcher.wait(timeout=120), 0)
        self.check_page(before, cluster.output)

    def test_the_coordinator_copies_the_records_of_all_sites(self):
        """Its copies are the sites' files, byte by byte, and the page of its site shows all."""
        cluster = Cluster(self.folder, 3, SEVERAL_SECONDS)
        address = f"127.0.0.1:{free_port()}"
        sites = [cluster.start(name, *(["--watch", address] if name == "node1" else []))
                 for name in cluster.names]
        self.processes += sites
        state = wait_until(lambda: len((state_of(address) or {}).get("sites", [])) == 3, 120,
                           "all sites on the page")
        self.assertTrue(state)
        for site in sites:
            self.assertEqual(site.wait(timeout=120), 0, cluster.log("node1"))
        copies = cluster.output / "node1" / "all_sites"
        for name in cluster.names:
            self.assertEqual((copies / name / "events.jsonl").read_bytes(),
                             (cluster.output / name / "events.jsonl").read_bytes())
        self.check_page(self.watch(copies), cluster.output)

    def test_an_unreadable_copy_takes_its_site_alone_from_the_page(self):
        """The coordinator's page shows the others and goes on; when the file is mended, all of them."""
        cluster = Cluster(self.folder, 3, LONG)
        address = f"127.0.0.1:{free_port()}"
        sites = [cluster.start(name, *(["--watch", address] if name == "node1" else []))
                 for name in cluster.names]
        self.processes += sites
        wait_until(lambda: len((state_of(address) or {}).get("sites", [])) == 3, 120,
                   "all sites on the page")
        copies = cluster.output / "node1" / "all_sites"
        copy = copies / "node2" / "events.jsonl"
        os.truncate(copy, 100)
        wait_until(lambda: state_of(address)["unreadable"], 120, "the damage on the page")
        state = state_of(address)
        self.assertEqual([site["site"] for site in state["sites"]], ["node1", "node3"])
        [unreadable] = state["unreadable"]
        self.assertEqual((unreadable["site"], unreadable["file"]), ("node2", str(copy)))
        self.assertIn(str(copy), unreadable["reason"])
        self.assertIsNone(state["error"])
        metrics = metrics_of(read(address, "/metrics"))
        self.assertEqual(metrics["farstep_unreadable_files", ""], 1)
        self.assertIn(("farstep_site_round", 'site="node3"'), metrics)
        self.assertNotIn(("farstep_site_round", 'site="node2"'), metrics)
        rounds = state["rounds_done"]
        wait_until(lambda: state_of(address)["rounds_done"] > rounds, 120, "another round on the page")
        beside = self.watch(copies)
        wait_until(lambda: state_of(beside)["unreadable"], 120, "the damage on a page of its own")
        report = farstep("report", copies, "--json")
        self.assert_success(report)
        self.assertIn(f"node2 is in no figure: {copy}", report.stderr)
        figures = json.loads(report.stdout)
        self.assertEqual([site["site"] for site in figures["sites"]], ["node1", "node3"])
        self.assertEqual([(file["site"], file["file"]) for file in figures["unreadable"]], [("node2", str(copy))])
        for site in sites:
            site.send_signal(signal.SIGINT)
        for name, site in zip(cluster.names, sites):
            self.assertEqual(site.wait(timeout=120), 130, cluster.log(name))
        shutil.copyfile(cluster.output / "node2" / "events.jsonl", copy)
        wait_until(lambda: not state_of(beside)["unreadable"], 120, "the mended copy on the page")
        report = farstep("report", cluster.output, "--json")
        self.assert_success(report)
        self.assertEqual(json.loads(read(beside, "/api/report")), json.loads(report.stdout))

    def test_the_page_in_a_folder_of_a_proxy_takes_its_token(self):
        """The redirect and the cookie stay in the folder."""
        (self.folder / "token").write_text("0123456789abcdef\n")
        port = free_port()
        self.processes.append(subprocess.Popen(
            [str(FARSTEP), "watch", str(self.folder), "--listen", f"127.0.0.1:{port}", "--token-file",
             str(self.folder / "token")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        handler = type("Handler", (FolderProxy,), {"page": port})
        wait_until(lambda: connects(port), 120, "the page")
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
            threading.Thread(target=proxy.serve_forever, daemon=True).start()
            jar = http.cookiejar.CookieJar()
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
            root = f"http://127.0.0.1:{proxy.server_port}/mine/"
            with browser.open(f"{root}?token=0123456789abcdef", timeout=30) as page:
                self.assertEqual(page.url, root)
                self.assertIn("<html", page.read().decode())
            for path in ("api/status", "watch.js"):
                with browser.open(root + path, timeout=30) as answer:
                    self.assertEqual(answer.status, 200)
            [cookie] = jar
            self.assertEqual(cookie.path, "/mine")
            proxy.shutdown()

    def test_a_separate_coordinator_serves_the_page(self):
        """It holds no tensors and no site runs in it; its page has all sites."""
        no_host = {"coordinator": {"host": False}}
        cluster = Cluster(self.folder, 2, SEVERAL_SECONDS, sites={0: no_host, 1: no_host})
        config = cluster.write_coordinator_config(output="out/coordinator")
        address = f"127.0.0.1:{free_port()}"
        coordinator = subprocess.Popen([str(FARSTEP), "coordinator", "--config", str(config),
                                        "--watch", address],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(coordinator)
        sites = [cluster.start(name) for name in cluster.names]
        self.processes += sites
        wait_until(lambda: len((state_of(address) or {}).get("sites", [])) == 2, 120,
                   "both sites on the page")
        for name, site in zip(cluster.names, sites):
            self.assertEqual(site.wait(timeout=120), 0, cluster.log(name))
        self.assertEqual(coordinator.wait(timeout=120), 0)

    def test_wrong_requests_get_a_clear_error_and_the_run_goes_on(self):
        """Oversized, malformed, slow and writing requests, while the page is in the run's process."""
        cluster = Cluster(self.folder, 1, LONG)
        port = free_port()
        site = cluster.start("node1", "--watch", f"127.0.0.1:{port}")
        self.processes.append(site)
        wait_until(lambda: (state_of(f"127.0.0.1:{port}") or {}).get("rounds_done"), 120,
                   "a round on the page")
        host = b"Host: localhost\r\n"
        cases = {
            b"POST /api/status HTTP/1.1\r\n" + host + b"Content-Length: 9\r\n\r\n{\"a\": 1}\n": "405",
            b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n" + host + b"\r\n": "414",
            b"GET / HTTP/1.1\r\n" + host + b"A: " + b"b" * 200_000 + b"\r\n\r\n": "431",
            b"GET / HTTP/1.1\r\n" + host + b"no colon\r\n\r\n": "400",
            b"GET /nothing HTTP/1.1\r\n" + host + b"\r\n": "404",
            b"GET /api/timeline?seconds=-1 HTTP/1.1\r\n" + host + b"\r\n": "400",
            b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n": "403",
            b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n": "403",
            b"GET / HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n": "400",
            b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n": "405",
            b"BREW / HTTP/1.1\r\n" + host + b"\r\n": "405",
            b"GET /../../etc/passwd HTTP/1.1\r\n" + host + b"\r\n": "404",
            b"GET /%2e%2e%2f%2e%2e%2fetc%2fpasswd HTTP/1.1\r\n" + host + b"\r\n": "404",
            b"GET //etc/passwd HTTP/1.1\r\n" + host + b"\r\n": "404",
            b"GET /api/status/../../token HTTP/1.1\r\n" + host + b"\r\n": "404",
            b"GET /..\\..\\token HTTP/1.1\r\n" + host + b"\r\n": "404",
            b"GET /watch.js%00.html HTTP/1.1\r\n" + host + b"\r\n": "404",
            b"GET /%ff%fe%zz HTTP/1.1\r\n" + host + b"\r\n": "404",
            b"GET / HT": "408",
        }
        for request, status in cases.items():
            self.assertEqual(first_line(port, request).split(" ")[1:2], [status], request[:60])
        # What is no HTTP at all is at least ended.
        first_line(port, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 3000)
        rounds = len(by_event(cluster, "node1", "round"))
        wait_until(lambda: len(by_event(cluster, "node1", "round")) > rounds, 120, "another round")
        self.assertEqual(state_of(f"127.0.0.1:{port}")["sites"][0]["site"], "node1")
        site.send_signal(signal.SIGINT)
        self.assertEqual(site.wait(timeout=120), 130)

    def test_many_slow_and_deaf_connections_cost_memory_within_a_limit_and_no_round(self):
        """Requests byte by byte, readers that never read, and more connections than there may be."""
        cluster = Cluster(self.folder, 1, LONG)
        (self.folder / "token").write_text("0123456789abcdef\n")
        port = free_port()
        site = cluster.start("node1", "--watch", f"127.0.0.1:{port}", "--token-file",
                             str(self.folder / "token"))
        self.processes.append(site)
        wait_until(lambda: by_event(cluster, "node1", "round"), 120, "a round")
        known = b"Authorization: Bearer 0123456789abcdef\r\n"
        status = b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n"
        wait_until(lambda: first_line(port, status + known + b"\r\n") == "HTTP/1.1 200 OK", 120, "the page")
        for wrong in (b"", b"Authorization: Bearer 0123456789abcdee\r\n",
                      b"Authorization: Bearer " + b"0" * 8000 + b"\r\n", b"Authorization: Basic 0123456789abcdef\r\n",
                      b"Cookie: farstep_token=0123456789abcde\r\n", b"Cookie: " + b"farstep_token=;" * 20 + b"\r\n"):
            self.assertIn(" 401 ", first_line(port, status + wrong + b"\r\n"), wrong[:60])
        before = memory_kib(site.pid)
        rounds = len(by_event(cluster, "node1", "round"))
        with contextlib.ExitStack() as stack:
            def connect(first: bytes) -> socket.socket:
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(first)
                return connection

            deaf = [connect(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n" + known + b"\r\n")
                    for _ in range(20)]
            began = time.monotonic()
            slow = [connect(b"GET / HTTP/1.1\r\nA: ") for _ in range(30)]
            # A byte now and then does not move the deadline of the whole request.
            answers = {}
            while len(answers) < len(slow):
                self.assertLess(time.monotonic() - began, 120, "slow requests are still open")
                for connection in slow:
                    if connection in answers:
                        continue
                    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        connection.sendall(b"a")
                ready, _, _ = select.select([each for each in slow if each not in answers], [], [], 0.2)
                for connection in ready:
                    with contextlib.suppress(ConnectionResetError):
                        answers[connection] = connection.recv(64)
                    answers.setdefault(connection, b"")
            self.assertGreater(time.monotonic() - began, 5)
            self.assertTrue(any(answer.startswith(b"HTTP/1.1 408 ") for answer in answers.values()))
            for _ in range(200):  # beyond the limit, without a wait for any
                more = stack.enter_context(socket.socket())
                more.setblocking(False)
                more.connect_ex(("127.0.0.1", port))
            for _ in range(100):  # streams that would be held for ever
                connect(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n" + known + b"\r\n")
            for _ in range(3):
                self.assertEqual(first_line(port, status + known + b"\r\n"), "HTTP/1.1 200 OK")
            # 64 connections of 16 KiB, and an event each; a connection's memory is not its sender's choice.
            self.assertLess(memory_kib(site.pid) - before, 64 * 1024)
            self.assertEqual(len(deaf), 20)
        wait_until(lambda: len(by_event(cluster, "node1", "round")) > rounds + 1, 120, "another round")
        site.send_signal(signal.SIGINT)
        self.assertEqual(site.wait(timeout=120), 130)

    def test_a_site_tells_its_losses_and_where_the_model_is(self):
        """Every site, not only the host, in plain lines where its output is no terminal."""
        cluster = Cluster(self.folder, 2)
        sites = [cluster.start(name) for name in cluster.names]
        self.processes += sites
        for name, site in zip(cluster.names, sites):
            self.assertEqual(site.wait(timeout=120), 0, cluster.log(name))
            log = cluster.log(name)
            self.assertRegex(log, r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d info \[" + name + r"\] round 1 of "
                             r"3 is done: loss \d\.\d{3}, .* tokens/s, waited ")
            self.assertRegex(log, r"validation after round 3: loss \d\.\d{3}, over this site's share")
            folder = re.search(r"done: the model is in (\S+)", log)
            self.assertTrue(folder, log)
            self.assertTrue(Path(folder[1]).is_dir())
            self.assertNotIn("\x1b", log)
            self.assertTrue(all(len(line) < 600 for line in log.splitlines()), log)

    def test_the_dashboard_and_the_rules_name_metrics_that_there_are(self):
        """A renamed metric would leave a panel or an alert empty."""
        cluster = Cluster(self.folder, 2)
        self.assertEqual(cluster.launch().returncode, 0)
        page = self.watch(cluster.output)
        wait_until(lambda: state_of(page).get("is_over"), 120, "the end of the run on the page")
        text = read(page, "/metrics")
        known = {name for name, _ in metrics_of(text)}
        # Those of loopback links are not measured; the program knows them all the same.
        known |= {"farstep_link_bits_per_second", "farstep_link_round_trip_seconds"}
        folder = REPOSITORY / "configs" / "monitoring"
        for file in ("grafana_dashboard.json", "prometheus_rules.yml"):
            used = set(re.findall(r"\bfarstep_[a-z_]+", (folder / file).read_text(encoding="utf-8")))
            self.assertTrue(used)
            self.assertLessEqual(used, known, file)
        json.loads((folder / "grafana_dashboard.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
