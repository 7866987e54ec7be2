"""docs/two_machines.md: its commands as they are written, at two sites, one behind a router."""

import json
import re
import sys
import time
import unittest

from cluster import FARSTEP, REPOSITORY, ClusterTest, wait_until
from internet import SEOUL, Internet, obstacle
from page_commands import blocks_of, sections_of

PAGE = REPOSITORY / "docs" / "two_machines.md"
SITES = ("seoul", "lyon")
STEP_SECONDS = 100
FETCH = """import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"""


def setUpModule():
    """The two sites need root, nftables and sshd."""
    if missing := obstacle():
        raise unittest.SkipTest(missing)


class Marks(unittest.TestCase):
    """Who runs the blocks of the page."""

    def test_every_block_is_run_or_marked(self):
        """A block of commands names who runs it, or says that the test does not."""
        for title, section in sections_of(PAGE).items():
            for block in blocks_of(section):
                self.assertEqual(block.language, "sh", title)
                self.assertIn(block.words, [(who,) for who in (*SITES, "both", "not-run")], title)
                if block.words == ("not-run",):
                    self.assertEqual(title, "1. Build, at both machines")


class TwoSites(ClusterTest):
    """From an empty folder at each site to a text that the model writes."""

    def setUp(self):
        super().setUp()
        self.net = Internet(self.folder, rate="50M", round_trip="80ms")
        self.addCleanup(self.net.close)
        self.terminals = {}
        for site in (self.net.seoul, self.net.lyon):
            (site.home / "farstep" / "build" / "release").mkdir(parents=True)
            (site.home / "farstep" / "build" / "release" / "farstep").symlink_to(FARSTEP)
            (site.home / "farstep" / ".deps").symlink_to(REPOSITORY / ".deps")
            self.terminals[site.name] = self.net.terminal(site, f"terminal-{site.name}")
            self.terminals[site.name].wait(10)

    def run_section(self, section: str, meanwhile=lambda: None):
        """Runs the section's blocks, at all sites at once, and the blocks of a site in order."""
        waiting = {site: [block.text for block in blocks_of(section) if block.language == "sh"
                          and block.words[0] in (site, "both")] for site in SITES}
        for site, texts in waiting.items():
            self.terminals[site].type("".join(texts))
        meanwhile()
        for site in SITES:
            self.terminals[site].wait(STEP_SECONDS)

    def look_at_live_page(self, url: str):
        """Waits until the page at Seoul knows both sites, which train."""
        seoul = self.net.seoul

        def both_train() -> bool:
            try:
                state = json.loads(seoul.run(sys.executable, "-c", FETCH, f"{url}/api/status"))
            except (AssertionError, ValueError):  # the page is not there yet, or knows nothing yet
                return False
            return {site["site"] for site in state.get("sites", [])} == set(SITES)
        wait_until(both_train, 120, f"both sites at {url}")
        self.assertTrue(self.net.dial(self.net.lyon, SEOUL, 7400))
        # Nobody reaches Lyon, by its own address or the router's.
        for address in ("192.168.1.2", "203.0.113.2"):
            self.assertFalse(self.net.dial(seoul, address, 7400))

    def events(self, site: str, kind: str) -> list[dict]:
        """A site's own records of a kind."""
        home = {"seoul": self.net.seoul.home, "lyon": self.net.lyon.home}[site]
        text = (home / "mine" / "runs" / site / "events.jsonl").read_text(encoding="utf-8")
        return [event for event in map(json.loads, text.splitlines()) if event["event"] == kind]

    def test_its_commands_train_a_model_at_two_sites(self):
        """All of them succeed; both sites end every round with one hash, and the model writes."""
        url = re.search(r"<(http://127\.0\.0\.1:\d+)>", PAGE.read_text(encoding="utf-8"))[1]
        for title, section in sections_of(PAGE).items():
            if not re.match(r"[2-9]\. ", title):
                continue
            begin = time.monotonic()
            if "farstep train" in section:
                self.run_section(section, lambda: self.look_at_live_page(url))
            else:
                self.run_section(section)
            print(f"{title}: {time.monotonic() - begin:.1f} s", flush=True)
        hashes = [[event["theta_hash"] for event in self.events(site, "round")] for site in SITES]
        run = json.loads((self.net.seoul.home / "mine" / "run.json").read_text(encoding="utf-8"))
        self.assertEqual(len(hashes[0]), run["outer"]["rounds"])
        self.assertEqual(hashes[0], hashes[1])
        said = self.terminals["seoul"].said()
        self.assertIn("It is a truth universally", said)
        self.assertTrue((self.net.seoul.home / "report.html").exists())
        self.assertTrue((self.net.seoul.home / "model" / "model.safetensors").exists())
        # What the sites sent each other has passed the lab's links.
        sent = sum(event["wan_bytes_sent"] for event in self.events("lyon", "round"))
        self.assertGreater(self.net.counters()["sites"][1]["up"]["passed"]["bytes"], sent)


if __name__ == "__main__":
    unittest.main()
