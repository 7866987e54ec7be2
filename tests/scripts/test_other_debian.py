"""How scripts/other_debian.sh makes a system and what it runs there, with programs that stand in for
debootstrap and for namespaces."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from stand_in import SOURCE, StandIns

# debootstrap --variant=minbase SUITE ROOT MIRROR
DEBOOTSTRAP = """
here=$(dirname "$0")
echo "$2 $4" >>"$here/made.txt"
mkdir -p "$3/etc/apt/apt.conf.d" "$3/root"
echo unpacking
[ ! -e "$here/broken" ] || { touch "$3/half"; echo 'no such package'; exit 1; }
"""
# unshare --mount debootstrap ..., or unshare OPTION ... sh -euc MOUNTS sh ROOT COMMAND
UNSHARE = """
[ "$2" != debootstrap ] || { shift; exec "$@"; }
while [ "$1" != sh ]; do shift; done
cd "$5/root/farstep"
shift 5
exec "$@"
"""


class OtherDebian(unittest.TestCase):
    """A repository of nothing but the script, and of scripts that say what runs."""

    def setUp(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        self.tree = folder / "tree"
        (self.tree / "scripts").mkdir(parents=True)
        for name in ("other_debian.sh", "script_help.sh"):
            shutil.copy(SOURCE / "scripts" / name, self.tree / "scripts")
        self.put_script("quickstart.sh", "echo a model writes; touch .deps/fetched 2>/dev/null || mkdir .deps")
        self.put_script("test.sh", "ls .deps; echo 3 passed, 0 failed")
        (self.tree / ".gitignore").write_text("/.deps\n/build/\n", encoding="utf-8")
        self.programs = StandIns(folder / "programs")
        self.programs.put("debootstrap", DEBOOTSTRAP)
        self.programs.put("unshare", UNSHARE)
        self.programs.put("id", "echo 0")
        self.programs.put("apt-config", "echo 'Acquire::http::Proxy \"http://proxy\";'")
        self.git("init", "--quiet")
        self.commit()
        self.system = self.tree / "build/trixie"

    def git(self, *arguments: str):
        """Runs git in the repository."""
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a", *arguments], cwd=self.tree, check=True)

    def commit(self):
        """Commits all that is there."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a commit")

    def put_script(self, name: str, body: str):
        """A script of the repository."""
        path = self.tree / "scripts" / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run_script(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        """Runs the script."""
        return self.programs.run("scripts/other_debian.sh", *arguments, cwd=self.tree, **environment)

    def test_both_commands_run_in_a_system_that_stays(self):
        for _ in range(2):
            result = self.run_script()
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertLess(result.stdout.index("a model writes"), result.stdout.index("3 passed, 0 failed"))
            self.assertRegex(result.stdout, r"tests ended with exit code 0 after \d+ s")
        self.assertEqual(self.programs.take_lines("made.txt"), ["trixie http://deb.debian.org/debian"])
        self.assertIn("a model writes", (self.system / "quickstart.log").read_text(encoding="utf-8"))
        self.assertIn("proxy", (self.system / "root/etc/apt/apt.conf.d/90network").read_text(encoding="utf-8"))

    def test_the_clone_is_the_commit_and_only_downloads_stay(self):
        self.put_script("test.sh", "echo a change that is in no commit")
        (self.tree / "scripts/leftover").touch()
        self.assertIn("3 passed", self.run_script().stdout)
        clone = self.system / "root/root/farstep"
        self.assertFalse((clone / "scripts/leftover").exists())
        (clone / "built").touch()
        self.commit()
        self.assertIn("a change that is in no commit", self.run_script().stdout)
        self.assertTrue((clone / ".deps/fetched").exists())
        self.assertFalse((clone / "built").exists())

    def test_a_system_that_was_half_made_is_made_anew(self):
        broken = self.programs.folder / "broken"
        broken.touch()
        result = self.run_script("--folder", self.system, "sid", FARSTEP_MIRROR="http://mirror")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no such package", result.stdout)
        self.assertIn("debootstrap failed", result.stderr)
        broken.unlink()
        self.assertEqual(self.run_script("sid", FARSTEP_MIRROR="http://mirror").returncode, 0)
        self.assertEqual(self.run_script("--folder", self.system, "sid").returncode, 0)
        self.assertEqual(self.programs.take_lines("made.txt"),
                         ["sid http://mirror", "sid http://mirror", "sid http://deb.debian.org/debian"])
        self.assertFalse((self.system / "root/half").exists())

    def test_the_first_failure_is_the_end(self):
        self.put_script("quickstart.sh", "echo no compiler; exit 7")
        self.commit()
        result = self.run_script()
        self.assertEqual(result.returncode, 7)
        self.assertIn("no compiler\nother_debian: quickstart ended with exit code 7", result.stdout)
        self.assertNotIn("3 passed", result.stdout)

    def test_it_can_stop_after_the_quickstart(self):
        result = self.run_script("--quickstart")
        self.assertEqual(result.returncode, 0)
        self.assertIn("a model writes", result.stdout)
        self.assertNotIn("3 passed", result.stdout)

    def test_only_root_may(self):
        self.programs.put("id", "echo 1000")
        result = self.run_script()
        self.assertEqual(result.returncode, 1)
        self.assertIn("as root", result.stderr)
        self.assertFalse(self.system.exists())


if __name__ == "__main__":
    unittest.main()
