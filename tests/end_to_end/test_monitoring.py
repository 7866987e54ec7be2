"""What the programs of others make of our figures: Prometheus, its promtool, and TensorBoard's files."""

import contextlib
import csv
import json
import shutil
import signal
import struct
import subprocess
import unittest
import urllib.parse
from pathlib import Path

from cluster import REPOSITORY, Cluster, ClusterTest, farstep, free_port, wait_until
from test_watch import LONG, metrics_of, read

MONITORING = REPOSITORY / "configs" / "monitoring"
# Links of loopback have no measured figures.
OF_REAL_LINKS = ("farstep_link_bits_per_second", "farstep_link_round_trip_seconds")


def tool(name: str) -> str | None:
    """A program of Prometheus: as set-up unpacks it, or on the path."""
    unpacked = REPOSITORY / ".deps" / "prometheus" / "usr" / "bin" / name
    return str(unpacked) if unpacked.exists() else shutil.which(name)


def dashboard_expressions() -> list[str]:
    """Every query of Grafana's panels, for the job of prometheus.yml."""
    found = []

    def walk(part):
        if isinstance(part, dict):
            if isinstance(part.get("expr"), str):
                found.append(part["expr"].replace("$job", "farstep"))
            part = list(part.values())
        if isinstance(part, list):
            for each in part:
                walk(each)

    walk(json.loads((MONITORING / "grafana_dashboard.json").read_text(encoding="utf-8")))
    assert found
    return found


def crc32c(data: bytes) -> int:
    """The checksum of RFC 3720, bit by bit."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(data: bytes) -> int:
    """As TFRecord files have a checksum."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def varint(message: bytes, place: int) -> tuple[int, int]:
    """A number of a protocol buffer, and where it ends."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7f) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def fields(message: bytes) -> dict[int, list]:
    """The values of a protocol buffer by their field: numbers, or bytes."""
    found: dict[int, list] = {}
    place = 0
    while place < len(message):
        key, place = varint(message, place)
        if key & 7 == 0:
            value, place = varint(message, place)
        else:
            length, place = {1: (8, place), 5: (4, place)}.get(key & 7) or varint(message, place)
            value, place = message[place:place + length], place + length
            assert len(value) == length
        found.setdefault(key >> 3, []).append(value)
    return found


def scalars_of(file: Path) -> list[tuple[str, int, float, float]]:
    """Tag, step, time and value of each point of an event file, by TensorFlow's record.proto and event.proto."""
    content, place, points = file.read_bytes(), 0, []
    while place < len(content):
        length, check = struct.unpack("<QI", content[place:place + 12])
        assert check == masked(content[place:place + 8])
        event = content[place + 12:place + 12 + length]
        assert struct.unpack("<I", content[place + 12 + length:place + 16 + length])[0] == masked(event)
        known = fields(event)
        if place == 0:
            assert known[3] == [b"brain.Event:2"]
        time = struct.unpack("<d", known[1][0])[0]
        for summary in known.get(5, []):
            for value in fields(summary)[1]:
                parts = fields(value)
                points.append((parts[1][0].decode(), known.get(2, [0])[0], time,
                               struct.unpack("<f", parts[2][0])[0]))
        place += 16 + length
    return points


class Monitoring(ClusterTest):
    """Our files, read by who they are for."""

    def require(self, *names: str) -> list[str]:
        """The programs; without one the test is skipped."""
        found = [tool(name) for name in names]
        if None in found:
            self.skipTest(f"this needs Prometheus' {' and '.join(names)}")
        return found

    def promtool(self, *arguments: object, text: str = "", advice: str = ""):
        """Runs promtool, which must find no fault but for this piece of advice."""
        result = subprocess.run([tool("promtool"), *map(str, arguments)], input=text, text=True,
                                capture_output=True, timeout=60, check=False)
        if advice and result.returncode == 3:  # advice alone
            self.assertEqual(result.stderr.strip(), advice)
            return
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_promtool_accepts_the_rules_the_configuration_and_the_dashboard_s_queries(self):
        """And each alert comes when it has to, not before."""
        self.require("promtool")
        self.promtool("check", "config", MONITORING / "prometheus.yml")
        queries = {"groups": [{"name": "dashboard", "rules": [
            {"record": f"query_{i}", "expr": query} for i, query in enumerate(dashboard_expressions())]}]}
        (self.folder / "queries.yml").write_text(json.dumps(queries))
        self.promtool("check", "rules", self.folder / "queries.yml")

        def alarm(kind, values):
            return {"series": f'farstep_alarms{{job="farstep",kind="{kind}"}}', "values": values}

        def alert(name, minutes, *labels, summary=""):
            expected = [{"exp_labels": {"job": "farstep"} | more, "exp_annotations": {"summary": summary}}
                        for more in labels]
            return {"alertname": name, "eval_time": f"{minutes}m", "exp_alerts": expected}

        test = {"rule_files": [str(MONITORING / "prometheus_rules.yml")], "tests": [{
            "interval": "1m",
            "input_series": [
                alarm("site_gone", "0x4 1x1000"), alarm("slow_link", "0x4 2x1000"), alarm("loss_rises", "0x4 1x1000"),
                alarm("bad_delta", "0x4 1x1000"),
                {"series": 'up{job="farstep"}', "values": "1x4 0x1000"},
                {"series": 'farstep_rounds_done{job="farstep"}', "values": "0+1x60 60x1000"},
                {"series": 'farstep_site_ended{job="farstep",site="a"}', "values": "1x1000"},
                {"series": 'farstep_site_ended{job="farstep",site="b"}', "values": "0x1000"}],
            "alert_rule_test": [
                alert("FarstepSiteGone", 5),
                alert("FarstepSiteGone", 7, {"kind": "site_gone"}, summary="A site of the run is gone (farstep)"),
                alert("FarstepSlowLink", 9),
                alert("FarstepSlowLink", 11, {"kind": "slow_link"},
                      summary="2 links have less than half of their usual speed (farstep)"),
                alert("FarstepLossRises", 4),
                alert("FarstepLossRises", 5, {"kind": "loss_rises"}, summary="The loss of the run rises (farstep)"),
                alert("FarstepBadDelta", 4),
                alert("FarstepBadDelta", 5, {"kind": "bad_delta"},
                      summary="The delta of 1 sites was left out (farstep)"),
                alert("FarstepPageUnreachable", 9),
                alert("FarstepPageUnreachable", 11, {}, summary="Nobody serves the figures of the run (farstep)"),
                alert("FarstepNoProgress", 400),
                alert("FarstepNoProgress", 460, {}, summary="No round has ended for six hours (farstep)")]}]}
        (self.folder / "alerts.yml").write_text(json.dumps(test))
        self.promtool("test", "rules", self.folder / "alerts.yml")

    def test_prometheus_scrapes_a_run_and_answers_the_dashboard_s_queries(self):
        """The real program, with our configuration but for the address and the interval."""
        prometheus, _ = self.require("prometheus", "promtool")
        cluster = Cluster(self.folder, 2, LONG | {"evaluate": {"every_rounds": 5, "windows": 8}})
        page = f"127.0.0.1:{free_port()}"
        sites = [cluster.start(name, *(["--watch", page] if name == "node1" else [])) for name in cluster.names]
        self.processes += sites
        configuration = (MONITORING / "prometheus.yml").read_text(encoding="utf-8")
        changed = configuration.replace("127.0.0.1:8377", page).replace("scrape_interval: 10s", "scrape_interval: 1s")
        self.assertEqual(changed.count("1s"), 1)
        (self.folder / "prometheus.yml").write_text(changed)
        shutil.copy(MONITORING / "prometheus_rules.yml", self.folder)
        address = f"127.0.0.1:{free_port()}"
        self.processes.append(subprocess.Popen(
            [prometheus, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/series",
             f"--web.listen-address={address}", "--log.level=error"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

        def answer(query: str) -> list:
            """The samples; none while Prometheus does not listen."""
            with contextlib.suppress(OSError):
                body = json.loads(read(address, "/api/v1/query?query=" + urllib.parse.quote(query)))
                self.assertEqual(body["status"], "success", query)
                return body["data"]["result"]
            return []

        for query in dashboard_expressions():
            if not any(name in query for name in OF_REAL_LINKS):
                wait_until(lambda query=query: answer(query), 120, query)
        # The speed of a line is told in bits everywhere else too.
        self.promtool("check", "metrics", text=read(page, "/metrics"),
                      advice='farstep_link_bits_per_second use base unit "bytes" instead of "bits"')
        shown = metrics_of(read(page, "/metrics"))
        names = {name for name, _ in shown if name.startswith("farstep_")}
        stored = {sample["metric"]["__name__"] for sample in answer('{__name__=~"farstep_.*"}')}
        self.assertEqual(stored, names)
        before = float(answer("farstep_rounds_done")[0]["value"][1])
        wait_until(lambda: float(answer("farstep_rounds_done")[0]["value"][1]) > before, 120, "another round")
        rules = json.loads(read(address, "/api/v1/rules"))["data"]["groups"][0]["rules"]
        self.assertEqual({rule["lastError"] for rule in rules if "lastError" in rule} - {""}, set())
        for site in sites:
            site.send_signal(signal.SIGINT)
        for name, site in zip(cluster.names, sites):
            self.assertIn(site.wait(timeout=120), (0, 130), cluster.log(name))

    def test_an_independent_reader_finds_the_points_of_the_tables_in_tensorboard_s_files(self):
        """Records and messages by their specification; each point is a row of the CSV file."""
        cluster = Cluster(self.folder, 2)
        self.assert_success(cluster.launch())
        table, boards = self.folder / "figures.csv", self.folder / "boards"
        self.assert_success(farstep("report", cluster.output, "--csv", table, "--tensorboard", boards))
        rows: dict[str, list] = {}
        with open(table, newline="", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                value = struct.unpack("<f", struct.pack("<f", float(row["value"])))[0]
                rows.setdefault(row["owner"], []).append((row["series"], int(row["place"]), value))
        self.assertEqual({folder.name for folder in boards.iterdir()}, set(rows))
        for owner, expected in rows.items():
            found = [point for file in (boards / owner).iterdir() for point in scalars_of(file)]
            self.assertEqual(sorted((tag, step, value) for tag, step, _, value in found), sorted(expected), owner)
        report = cluster.report()
        single = struct.unpack("<f", struct.pack("<f", report["final_loss"]))[0]
        self.assertIn(("loss/validation", report["rounds"], single), rows["run"])


if __name__ == "__main__":
    unittest.main()
