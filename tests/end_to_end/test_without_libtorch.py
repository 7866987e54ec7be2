"""`farstep` where `farstep-torch` and LibTorch are not: it has the commands that need neither, and
names what the others lack."""

import re
import shutil
import subprocess
import unittest
from pathlib import Path

from cluster import FARSTEP, Cluster, ClusterTest, by_event


class WithoutLibTorch(ClusterTest):
    """The program alone in a folder."""

    def setUp(self):
        super().setUp()
        (self.folder / "alone").mkdir()
        self.alone = shutil.copy(FARSTEP, self.folder / "alone")

    def run_alone(self, *arguments: str) -> subprocess.CompletedProcess:
        """The program's command, to its end."""
        return subprocess.run([self.alone, *arguments], capture_output=True, text=True, timeout=60,
                              check=False)

    def test_it_loads_no_libtorch(self):
        libraries = subprocess.run(["ldd", self.alone], capture_output=True, text=True, check=True)
        self.assertIn("libzmq", libraries.stdout)
        self.assertNotRegex(libraries.stdout, "torch|libc10|cudart")

    def test_a_coordinator_runs_without(self):
        """Its site is a whole installation."""
        cluster = Cluster(self.folder, 1, {"outer": {"rounds": 2}},
                          sites={0: {"coordinator": {"host": False}}})
        config = cluster.write_coordinator_config(output="out/coordinator")
        coordinator = subprocess.Popen([self.alone, "coordinator", "--config", config],
                                       stderr=subprocess.DEVNULL)
        self.processes.append(coordinator)
        site = self.start_all(cluster)["node1"]
        self.assertEqual(site.wait(timeout=120), 0, cluster.log("node1"))
        self.assertEqual(coordinator.wait(timeout=120), 0)
        self.assertEqual(by_event(cluster, "node1", "end")[-1]["outcome"], "done")

    def test_what_needs_it_is_refused_by_name(self):
        missing = Path(self.alone).parent / "farstep-torch"
        for command in ("train", "check", "manual"):
            refused = self.run_alone(command, "--help")
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertRegex(refused.stderr, f"farstep {command}: needs LibTorch, .*"
                                             f"{re.escape(str(missing))}")
        missing.write_text("no program", encoding="utf-8")
        refused = self.run_alone("train", "--help")
        self.assertEqual(refused.returncode, 2)
        self.assertIn(f"{missing}: Permission denied", refused.stderr)

    def test_other_commands_answer(self):
        listed = self.run_alone("--help").stdout
        self.assertIn("\n  train ", listed)
        for command in ("coordinator", "init", "inspect", "keys", "launch", "plan", "report",
                        "simulate", "tokenize", "watch"):
            help_text = self.run_alone(command, "--help")
            self.assertEqual(help_text.returncode, 0, help_text.stderr)
            self.assertIn(f"farstep {command}", help_text.stdout)


if __name__ == "__main__":
    unittest.main()
