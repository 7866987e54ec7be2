"""A running lab of scripts/wan_lab: sites in network namespaces of their own, behind links that can be cut.

It needs root and /dev/net/tun. WAN_LAB_BINARY names another build's router. Standard library only.
"""

import json
import os
import subprocess
from pathlib import Path

from cluster import REPOSITORY, wait_until

WAN_LAB = REPOSITORY / "scripts" / "wan_lab"
START_SECONDS = 20


def obstacle() -> str:
    """What this machine lacks for a lab; empty: nothing."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    return "" if Path("/dev/net/tun").exists() else "there is no /dev/net/tun"


class Lab:
    """A lab in a folder, whose sites are up. `options` are those of scripts/wan_lab, `started` those of Popen."""

    def __init__(self, folder: Path, *options: str, verb: str = "up", **started):
        self.folder, self.file = folder, folder / "lab.json"
        self.log = folder.with_suffix(".txt")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([WAN_LAB, verb, "--folder", folder, *options], stderr=log, **started)
        try:
            wait_until(lambda: self.file.exists() or self.process.poll() is not None, START_SECONDS, "a lab")
            if self.process.poll() is not None:
                raise AssertionError("the lab has ended: " + self.log.read_text(encoding="utf-8"))
        except AssertionError:
            self.close()
            raise
        sites = json.loads(self.file.read_text(encoding="utf-8"))["sites"]
        self.addresses = [site["address"] for site in sites]
        self.holders = [site["pid"] for site in sites]

    def command(self, site: int, *words: object) -> list[str]:
        """The command line that becomes these words in a site, counted from 1."""
        return ["nsenter", f"--net=/proc/{self.holders[site - 1]}/ns/net", *map(str, words)]

    def control(self, verb: str, *options: object) -> dict:
        """What the lab answers to a command, such as cut, heal, set and counters."""
        asked = subprocess.run([WAN_LAB, verb, "--folder", self.folder, *map(str, options)], capture_output=True,
                               text=True, timeout=60, check=False)
        if asked.returncode != 0:
            raise AssertionError(f"wan_lab {verb}: {asked.stdout}{asked.stderr}")
        return json.loads(asked.stdout)

    def close(self):
        """Ends the lab at once; its namespaces go with the last process in them."""
        self.process.kill()
        self.process.wait(timeout=60)
