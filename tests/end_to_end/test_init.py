"""`farstep init`: what it writes passes `farstep check`, and really trains."""

import contextlib
import json
import os
import pty
import select
import shutil
import subprocess
import unittest

from cluster import DATA, FARSTEP, REPOSITORY, ClusterTest, farstep, free_port, wait_until

WORK = ["--rounds", 2, "--base-steps", 3, "--base-batch", 2, "--sequence-length", 32,
        "--threads", 1]


class Init(ClusterTest):
    """Runs of two sites on the loopback."""

    def init(self, *options: object) -> subprocess.CompletedProcess:
        """Runs it with flags, without a terminal."""
        return subprocess.run([str(FARSTEP), "init", *map(str, options)], capture_output=True,
                              text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                              cwd=self.folder)

    def init_loopback(self, *options: object) -> dict:
        """Writes a tiny run of two sites of this machine into `mine`; returns its run file."""
        port = free_port()
        while port > 64_900:  # others follow it
            port = free_port()
        result = self.init("--run", "mine", "--sites", f"a=127.0.0.1:{port}", "b=127.0.0.1",
                           "--data", DATA, *WORK, *options)
        self.assert_success(result)
        for name in ("a", "b"):
            for step in (f"farstep doctor mine/{name}.json --peers",
                         f"farstep train mine/{name}.json --resume=auto"):
                self.assertIn(step, result.stdout)
        return json.loads((self.folder / "mine" / "run.json").read_text(encoding="utf-8"))

    def train(self):
        """check, doctor and launch with the files as they were written."""
        folder = self.folder / "mine"
        for name in ("a", "b"):
            checked = farstep("check", folder / f"{name}.json")
            self.assert_success(checked)
            self.assertEqual({line.split()[0] for line in checked.stdout.splitlines()}, {"ok"})
        doctors = [subprocess.Popen([str(FARSTEP), "doctor", str(folder / f"{name}.json"),
                                     "--peers", "--seconds", "0.2", "--wait", "20"],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                   for name in ("a", "b")]
        self.processes += doctors
        for doctor in doctors:
            out, _ = doctor.communicate(timeout=120)
            self.assertEqual(doctor.returncode, 0, out)
        self.assert_success(farstep("launch", folder))
        result = farstep("report", folder / "runs", "--json")
        self.assert_success(result)
        report = json.loads(result.stdout)
        self.assertEqual(report["rounds"], 2)
        self.assertEqual([site["site"] for site in report["sites"]], ["a", "b"])
        # A fresh model of 2,048 tokens begins a little above their logarithm, at 7.66.
        self.assertLess(report["final_loss"], 7.64)

    def test_a_run_with_keys_trains(self):
        """Flags to files to two rounds, over secure links."""
        run = self.init_loopback()
        self.assertEqual(run["outer"], {"rounds": 2, "learning_rate": 0.7, "momentum": 0.5})
        self.train()
        for path in (self.folder / "mine" / "keys").rglob("*"):
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)

    def test_a_run_without_keys_trains(self):
        """The ports of two sites at one address do not meet."""
        self.init_loopback("--no-keys")
        self.assertFalse((self.folder / "mine" / "keys").exists())
        self.train()

    def copied(self, name: str, command: str) -> None:
        """Runs a printed command with a shell in place of ssh; the site has its files, keys and data, and checks."""
        away = self.folder / f"away-{name}"
        away.mkdir()
        # ssh hands one string to a shell at the other side; the quotes are this side's.
        local, remote = (away, self.folder) if command.startswith("ssh") else (self.folder, away)
        stand_in = self.folder / "ssh"
        stand_in.write_text(f"#!/bin/sh\ncd {remote} && exec sh -c \"$2\"\n", encoding="utf-8")
        stand_in.chmod(0o755)
        ran = subprocess.run(["sh", "-c", command], cwd=local, capture_output=True, text=True, check=False,
                             env=os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        files = sorted(str(path.relative_to(away)) for path in away.rglob("*")
                       if path.is_file() and "data" not in path.parts)
        keys = [f"mine/keys/sites/{name}/{file}" for file in ("authority.crt", "revoked.crl", "site.crt", "site.key")]
        self.assertEqual(files, [f"mine/{name}.json", *keys, "mine/run.json"])
        self.assert_success(farstep("check", away / "mine" / f"{name}.json"))

    def test_one_command_a_site_brings_files_keys_and_data(self):
        """Sent to a site with an address, and fetched by one behind NAT."""
        shutil.copytree(DATA, self.folder / "data")
        result = self.init("--run", "mine", "--sites", f"a=127.0.0.1:{free_port()}", "b", "--data", "data", *WORK)
        self.assert_success(result)
        lines = [line.strip() for line in result.stdout.splitlines()]
        self.copied("a", next(line for line in lines if line.startswith("tar ")))
        self.copied("b", next(line.removeprefix("at b: ") for line in lines if line.startswith("at b: ssh")))

    def test_devices_of_single_sites(self):
        """A GPU at one site and a processor at the other; the work is a GPU's."""
        self.assert_success(self.init("--run", "mine", "--sites", "a=203.0.113.7", "b", "--data", "data", "--device",
                                      "cuda", "b=cpu"))
        kinds = [json.loads((self.folder / "mine" / f"{name}.json").read_text(encoding="utf-8"))["devices"][0]["kind"]
                 for name in "ab"]
        self.assertEqual(kinds, ["cuda", "cpu"])
        run = json.loads((self.folder / "mine" / "run.json").read_text(encoding="utf-8"))
        self.assertEqual(run["model"]["preset"], "150m")

    def test_missing_flags_are_named(self):
        """Without a terminal nothing is asked, and nothing is written."""
        known = ["--run", "mine", "--sites", "a=127.0.0.1", "--data", "data"]
        for flag in ("--run", "--sites", "--data"):
            place = known.index(flag)
            result = self.init(*known[:place], *known[place + 2:])
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn(f"{flag} is missing", result.stderr)
        for options, part in ((["--sites", "a", "b"], "a has no address"),
                              (["--sites", "a=127.0.0.1", "b", "--no-keys"], "--no-keys: b"),
                              (["--sites", "a=127.0.0.1:70000"], "port"),
                              (["--sites", "a=127.0.0.1", "--host", "c"], "--host: c")):
            result = self.init("--run", "mine", "--data", "data", *options)
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn(part, result.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_files_stay_unless_forced(self):
        """A second init is refused; with --force the configs are new and the keys are the old."""
        self.init_loopback()
        key = self.folder / "mine" / "keys" / "sites" / "b" / "site.key"
        before = key.read_bytes()
        options = ["--run", "mine", "--sites", "a=127.0.0.1", "b=127.0.0.1", "--data", DATA,
                   "--rounds", 7]
        refused = self.init(*options)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--force", refused.stderr)
        self.assert_success(self.init(*options, "--force"))
        run = json.loads((self.folder / "mine" / "run.json").read_text(encoding="utf-8"))
        self.assertEqual(run["outer"]["rounds"], 7)
        self.assertEqual(key.read_bytes(), before)

    def test_a_larger_vocabulary_of_the_data(self):
        """The model gets it; the preset's stays where it suffices."""
        text = self.folder / "text.txt"
        novel = next((REPOSITORY / ".deps" / "corpus" / "austen").glob("*.txt"))
        text.write_bytes(novel.read_bytes())
        made = farstep("tokenize", text, "--output", self.folder / "data", "--train-vocabulary",
                       3000)
        self.assert_success(made)
        self.assert_success(self.init("--run", "mine", "--sites", f"a=127.0.0.1:{free_port()}",
                                      "--data", "data", *WORK))
        run = json.loads((self.folder / "mine" / "run.json").read_text(encoding="utf-8"))
        self.assertEqual(run["model"], {"preset": "tiny", "vocabulary": 3000})
        self.assert_success(farstep("check", self.folder / "mine" / "a.json"))

    def test_a_terminal_is_asked(self):
        """Questions with defaults, one a line; flags are not asked for again."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([str(FARSTEP), "init", "--rounds", "3"], stdin=theirs,
                                   stdout=theirs, stderr=theirs, cwd=self.folder)
        os.close(theirs)
        self.processes.append(process)
        screen = b""

        def read():
            nonlocal screen
            if select.select([ours], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):  # the process has closed its side
                    screen += os.read(ours, 4096)

        def answer(question: str, text: str):
            def is_asked() -> bool:
                if screen.decode().rstrip(" ").endswith(":") and question in screen.decode():
                    return True
                read()
                return False
            nonlocal screen
            wait_until(is_asked, 120, f"{question!r} in {screen!r}")
            screen = b""
            os.write(ours, (text + "\n").encode())

        for question, text in (
                ("Name of the run [mine]", "test"), ("Folder to write [test]", ""),
                ("First site", "a=127.0.0.1"), ("Next site", "b="), ("Next site", "a=127.0.0.2"),
                ("stands twice", "b=300.1.2.3"), ("four numbers", "b"), ("Next site", "c"),
                ("at most one may have none", ""), ("Keys, so that links are encrypted", ""),
                ("Folder of the data [data/test]", str(DATA)), ("Device", "gpu"), ("one of cpu, cuda", "c=cpu"),
                ("no site has that name", ""),
                ("Model: tiny", ""), ("Local steps", "x"), ("Local steps", "5"),
                ("Sequences of a step", "")):
            answer(question, text)
        wait_until(lambda: read() or process.poll() is not None, 120, "the end")
        self.assertEqual(process.returncode, 0, screen)
        os.close(ours)
        run = json.loads((self.folder / "test" / "run.json").read_text(encoding="utf-8"))
        self.assertEqual([site["name"] for site in run["sites"]], ["a", "b"])
        self.assertEqual((run["outer"]["rounds"], run["plan"]["base_steps"]), (3, 5))
        self.assertTrue((self.folder / "test" / "keys" / "sites" / "b").is_dir())
        # b has no address: it needs no open port.
        site = json.loads((self.folder / "test" / "b.json").read_text(encoding="utf-8"))
        self.assertEqual(site["network"], {"keys": "keys/sites/b"})


if __name__ == "__main__":
    unittest.main()
