"""The systemd unit of docs/staying_up.md, under a systemd that boots in a container.

What the page tells root to do is run as it is written there.
"""

import json
import re
import subprocess
import unittest
from pathlib import Path

from cluster import DATA, FARSTEP, REPOSITORY, Cluster, ClusterTest, farstep, wait_until
from machine import Machine, obstacle
from page_commands import blocks_of, commands_for

PAGE = REPOSITORY / "docs" / "staying_up.md"
UNIT = REPOSITORY / "scripts" / "systemd" / "farstep@.service"
LIBTORCH = REPOSITORY / ".deps" / "libtorch"
SITES = ("seoul", "lyon")
ROUNDS = 60
# The container's /tmp is its own and homes are read-only for the unit, so what a build takes from
# its folders is shown elsewhere.
SHOWN_LIBTORCH = "/opt/libtorch"
LIBRARIES = f"""[Service]
Environment=LD_LIBRARY_PATH={SHOWN_LIBTORCH}/torch/lib:{SHOWN_LIBTORCH}/nvidia/cu13/lib
"""


def setUpModule():
    """A container needs root and systemd-nspawn."""
    if missing := obstacle():
        raise unittest.SkipTest(missing)


def settings_of(unit: Path) -> dict[str, str]:
    """The unit's settings; of one that is given more than once, the last value."""
    pairs = re.findall(r"^(\w+)=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    return dict(pairs)


class TheUnit(unittest.TestCase):
    """Its settings beside what the program says of itself."""

    def test_it_restarts_after_the_exit_codes_that_a_start_can_mend(self):
        """Of all that `farstep --help` lists: 4 alone."""
        listed = re.findall(r"^  (\d+) +(.*)$", farstep("--help").stdout.split("Exit codes:")[1],
                            re.MULTILINE)
        unit = settings_of(UNIT)
        self.assertEqual(unit["Restart"], "on-failure")
        stays = {"0", *unit["RestartPreventExitStatus"].split(), *unit["SuccessExitStatus"].split()}
        restarts = {code for code, _ in listed} - stays
        self.assertEqual(restarts, {code for code, text in listed if "start again" in text})
        self.assertEqual(restarts, {"4"})

    def test_a_stop_has_the_time_that_it_may_take(self):
        """The defaults of the deadlines that bound a stop, together."""
        text = farstep("train", "--help").stdout
        bounds = [re.search(rf"^  deadlines\.{name} .*\[([0-9.]+)\]$", text, re.MULTILINE)[1]
                  for name in ("transfer_stall_seconds", "checkpoint_seconds", "leave_seconds")]
        self.assertGreater(float(settings_of(UNIT)["TimeoutStopSec"]), sum(map(float, bounds)))

    def test_it_may_do_little(self):
        """systemd's own rating of a unit, from 0 (nothing) to 10 (all)."""
        rating = subprocess.run(
            ["systemd-analyze", "security", "--offline=yes", "--threshold=25", UNIT],
            capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(rating.returncode, 0, rating.stdout[-200:])


class ThePage(unittest.TestCase):
    """Who runs its commands."""

    def test_every_block_of_commands_is_run_or_marked(self):
        """By root in the tests below, or by no test."""
        words = [block.words for block in blocks_of(PAGE.read_text(encoding="utf-8"))
                 if block.language == "sh"]
        self.assertEqual(set(words), {("root",), ("not-run",)})


class UnderSystemd(ClusterTest):
    """Sites of one machine, each an instance of the unit."""

    def start_machine(self, run: dict, sites=SITES) -> Machine:
        """A booted machine with the sites' files and keys in /root/mine, and nothing installed."""
        made = self.folder / "made"
        made.mkdir()
        named = {"name": "mine", "sites": [{"name": name} for name in sites]}
        cluster = Cluster(made, len(sites), run | named, secure=False)  # its keys are made below
        keys = farstep("keys", "--folder", made / "keys", "--run", "mine", "--sites", *sites)
        self.assert_success(keys)
        for index, name in enumerate(sites):
            config = {"name": name, "coordinator": {"endpoint": cluster.endpoint},
                      "network": {"address": "127.0.0.1", "keys": f"keys/sites/{name}"},
                      "devices": [{"kind": "cpu", "threads": 1}], "cpu": {"products": "first"},
                      "data": "/srv/data", "output": "runs", "run": "run.json"}
            if index == 0:
                config["coordinator"]["host"] = True
            else:
                config["coordinator"]["site"] = sites[0]
            (made / f"{name}.json").write_text(json.dumps(config), encoding="utf-8")
        disk = self.folder / "disk"
        disk.mkdir()
        self.machine = Machine(disk, {"/usr/local/bin/farstep": FARSTEP,
                                      "/usr/local/bin/farstep-torch":
                                          FARSTEP.with_name("farstep-torch"),
                                      SHOWN_LIBTORCH: LIBTORCH,
                                      "/root/farstep/scripts": REPOSITORY / "scripts",
                                      "/root/mine": made, "/srv/data": DATA})
        self.addCleanup(self.machine.close)
        for place in ("/root/farstep/scripts", "/root/mine", "/srv/data", SHOWN_LIBTORCH):
            self.machine.path(place).mkdir(parents=True, exist_ok=True)
        drop_in = self.machine.path("/etc/systemd/system/farstep@.service.d")
        drop_in.mkdir()
        (drop_in / "libraries.conf").write_text(LIBRARIES, encoding="utf-8")
        self.machine.boot()
        return self.machine

    def follow_page(self, site: str):
        """Runs the page's commands for root, for this site in place of seoul."""
        commands = commands_for(PAGE, "root")
        self.assertEqual(len(commands), 3)
        for text in commands:
            self.assert_success(self.machine.run("bash", "-ec", text.replace("seoul", site)))

    def events(self, site: str, kind: str) -> list[dict]:
        """A site's records of a kind; a line that is being written is left out."""
        file = self.machine.path(f"/var/lib/farstep/{site}/events.jsonl")
        if not file.exists():
            return []
        lines = file.read_text(encoding="utf-8").split("\n")[:-1]
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def journal(self) -> str:
        """What the sites said."""
        said = self.machine.run("journalctl", "--unit", "farstep@*", "--output", "cat").stdout
        return said[-4000:]

    def says_finished(self, site: str) -> bool:
        """Whether the site has said since the boot that its run is finished."""
        said = self.machine.run("journalctl", "--boot", "--unit", f"farstep@{site}", "--output", "cat")
        return f"run 'mine' is finished: round {ROUNDS} of {ROUNDS}" in said.stdout

    def wait_for_round(self, number: int):
        """Waits until all sites have done this round and a step of the next one."""
        wait_until(lambda: all(any(event["round"] > number for event in self.events(site, "step"))
                               for site in SITES), 90, f"round {number}")

    def state(self, site: str) -> tuple[str, str]:
        """Whether the site's unit runs, and how it ended before."""
        unit = f"farstep@{site}"
        return self.machine.property(unit, "ActiveState"), self.machine.property(unit, "Result")

    def test_a_killed_site_and_a_restarted_machine_finish_the_run(self):
        """Every round has one hash at all sites, to the last; then the units stay inactive."""
        self.start_machine({"outer": {"rounds": ROUNDS}, "plan": {"base_steps": 60},
                            "evaluate": {"every_rounds": 0},
                            "deadlines": {"join_seconds": 60, "pause_seconds": 60,
                                          "lost_after_seconds": 3}})
        for site in SITES:
            self.follow_page(site)
        verified = self.machine.run("systemd-analyze", "verify", "farstep@seoul.service")
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))
        self.wait_for_round(3)
        killed = self.machine.run("systemctl", "kill", "--signal", "KILL", "farstep@lyon")
        self.assert_success(killed)
        wait_until(lambda: self.machine.property("farstep@lyon", "NRestarts") == "1", 120,
                   "a restart of the killed site")
        rounds = len(self.events("lyon", "round"))
        self.wait_for_round(rounds + 3)
        self.assertEqual(self.machine.property("farstep@seoul", "NRestarts"), "0", self.journal())

        self.machine.reboot()
        ends = [event["outcome"] for event in self.events("seoul", "end")]
        self.assertEqual(ends[0], "interrupted")
        wait_until(lambda: all(self.state(site) == ("inactive", "success") and
                               self.events(site, "end")[-1]["outcome"] == "done"
                               for site in SITES), 120, "the end of the run")
        hashes = {site: {event["round"]: event["theta_hash"]
                         for event in self.events(site, "round")} for site in SITES}
        self.assertEqual(sorted(hashes["seoul"]), list(range(1, ROUNDS + 1)))
        self.assertEqual(max(hashes["lyon"]), ROUNDS)
        for number, voted in hashes["lyon"].items():
            self.assertEqual(voted, hashes["seoul"][number])

        # A boot after the end starts them, and they have nothing to do, each alone.
        records = {site: self.events(site, "run") for site in SITES}
        self.machine.reboot()
        wait_until(lambda: all(self.says_finished(site) for site in SITES), 120, "a new start")
        wait_until(lambda: all(self.state(site) == ("inactive", "success") for site in SITES), 120,
                   "the end of the units")
        for site in SITES:
            self.assertEqual(self.machine.property(f"farstep@{site}", "NRestarts"), "0")
            self.assertEqual(self.events(site, "run"), records[site])

    def test_what_a_start_cannot_mend_is_not_started_again(self):
        """A wrong config ends the unit as failed; a missing peer does not."""
        self.start_machine({"deadlines": {"join_seconds": 1, "connect_seconds": 1,
                                          "lost_after_seconds": 2}})
        self.follow_page("seoul")
        unit = "farstep@seoul"
        wait_until(lambda: self.machine.property(unit, "NRestarts") == "1", 120, "a restart")
        self.assertIn("status=4", self.machine.run("journalctl", "--unit", unit).stdout)
        self.machine.path("/etc/farstep/seoul.json").write_text("{}", encoding="utf-8")
        wait_until(lambda: self.state("seoul") == ("failed", "exit-code"), 120, "its end")
        self.assertEqual(self.machine.property(unit, "ExecMainStatus"), "2")
        self.assertIn("/etc/farstep/seoul.json", self.journal())


if __name__ == "__main__":
    unittest.main()
