"""A site as a Slurm job, by configs/slurm/site.sbatch, on a cluster of this machine alone."""

import getpass
import os
import shutil
import socket
import subprocess
import unittest

from cluster import FARSTEP, REPOSITORY, Cluster, ClusterTest, by_event, free_port, wait_until

# One node, which counts as many devices as the script asks for.
CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
JobRequeue=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 Gres=gpu:1 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES
"""
STEPS = 300  # of a round: all rounds take some seconds
ACTIVE = ("RUNNING", "COMPLETING")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class Slurm(ClusterTest):
    """Slurm's daemons live as long as a test."""

    def setUp(self):
        super().setUp()
        if not all(shutil.which(program, path=SYSTEM_PATH) for program in PROGRAMS):
            self.skipTest("Slurm is not here")
        slurm = self.folder / "slurm"
        for part in ("state", "spool", "bin"):
            (slurm / part).mkdir(parents=True)
        (slurm / "bin/farstep").symlink_to(FARSTEP)
        host = socket.gethostname().split(".")[0]
        (slurm / "slurm.conf").write_text(CONFIG.format(
            host=host, folder=slurm, user=getpass.getuser(), controller=free_port(),
            node=free_port()))
        (slurm / "gres.conf").write_text(f"NodeName={host} Name=gpu File=/dev/null Count=1\n")
        key = slurm / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.environment = {**os.environ, "SLURM_CONF": str(slurm / "slurm.conf"),
                            "PATH": f"{slurm}/bin:{SYSTEM_PATH}"}
        # Forced, since others cannot look into the test's folder.
        self.start_daemon("munged", "--foreground", "--force", "--key-file", key,
                          "--socket", slurm / "munge.socket", "--pid-file", slurm / "munged.pid",
                          "--log-file", slurm / "munged.log", "--seed-file", slurm / "munged.seed")
        wait_until((slurm / "munge.socket").exists, 120, "munged listens")
        self.start_daemon("slurmctld", "-D")
        self.start_daemon("slurmd", "-D")
        wait_until(lambda: self.slurm("sinfo", "--noheader", "--format=%T", check=False) == "idle",
                   120, "the node is idle")
        self.addCleanup(self.end_jobs)

    def start_daemon(self, *command: object):
        """Starts one that ends with the test; what it prints goes to a file of its name."""
        with open(self.folder / f"slurm/{command[0]}.txt", "w", encoding="utf-8") as log:
            self.processes.append(subprocess.Popen(list(map(str, command)), env=self.environment,
                                                   cwd=self.folder / "slurm", stdout=log, stderr=log))

    def end_jobs(self):
        """Ends what a failed test leaves: a job's processes are no children of the daemons."""
        self.slurm("scancel", f"--user={getpass.getuser()}")
        wait_until(lambda: not self.slurm("squeue", "--noheader"), 120, "no job is left")

    def slurm(self, *command: object, check: bool = True) -> str:
        """What a command of Slurm prints."""
        result = subprocess.run([*map(str, command)], env=self.environment, cwd=self.folder,
                                capture_output=True, text=True, timeout=30, check=False)
        if check:
            self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def job(self, number: str) -> dict[str, str]:
        """Slurm's facts of a job."""
        words = self.slurm("scontrol", "show", "job", number).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def test_a_job_whose_time_ends_goes_on_as_the_next(self):
        """Its site saves at the signal, is queued again, and ends the run from its checkpoint."""
        cluster = Cluster(self.folder, 1, {"outer": {"rounds": 8}, "plan": {"base_steps": STEPS}})
        number = self.slurm("sbatch", "--parsable", REPOSITORY / "configs/slurm/site.sbatch",
                            self.folder / "node1.json")
        log = self.folder / f"farstep-{number}.txt"
        wait_until(lambda: any(event["round"] == 2 for event in by_event(cluster, "node1", "step")),
                   120, "the second round")
        # What --signal does when the time is nearly over.
        self.slurm("scancel", "--signal=TERM", number)
        wait_until(lambda: self.job(number)["JobState"] not in ACTIVE, 120, "the site's end")
        self.assertEqual(self.job(number)["JobState"], "PENDING")
        self.assertEqual(self.job(number)["Restarts"], "1")
        self.assertIn("Exited with exit code 130", log.read_text(encoding="utf-8"))
        # Slurm would wait for two minutes. A node refuses a job in the second in which it ended it.
        self.slurm("scontrol", "update", f"JobId={number}", "StartTime=now+3")
        wait_until(lambda: self.job(number)["JobState"] not in ("PENDING", *ACTIVE), 120, "the run's end")
        self.assertEqual(self.job(number)["JobState"], "COMPLETED")
        steps = [(event["round"], event["step"]) for event in by_event(cluster, "node1", "step")]
        self.assertEqual(len(by_event(cluster, "node1", "run")), 2)
        self.assertEqual(steps, sorted(set(steps)))
        self.assertEqual(steps[-1], (8, STEPS))
        self.assertEqual(len(steps), 8 * STEPS)


if __name__ == "__main__":
    unittest.main()
