"""Sites of two CPU slices that train as one."""

import os
import subprocess
import unittest
from unittest import mock

from cluster import FARSTEP, Cluster, ClusterTest, merge, validation_losses

# Fragments that are merged in mid-round, so that a sync changes values between two steps.
RUN = {"outer": {"rounds": 3}, "plan": {"base_steps": 6, "base_batch": 4, "micro_batch": 1},
       "sync": {"fragments": 2, "delay_steps": 1, "alpha": 0.5}}
# Two slices that emulate one speed, on a busy machine too, so that the shares of a batch stay the same.
SLICE = {"kind": "cpu", "threads": 1, "emulate": {"sequence_seconds": 0.25}}
SITES = {index: {"devices": [SLICE, SLICE]} for index in range(2)}


class SeveralDevices(ClusterTest):
    """Two sites of two devices each."""

    def cluster(self, name: str, run: dict | None = None, sites: dict | None = None) -> Cluster:
        """A run in a folder of its own."""
        return Cluster(self.make_folder(name), 2, merge(RUN, run or {}), sites or SITES)

    def test_buckets_are_master_bit_by_bit_and_resume(self):
        """Interrupted inside round 2 and resumed, or added up by the first device: the same bits."""
        whole = self.cluster("whole")
        self.assert_success(whole.launch())
        losses = validation_losses(whole)
        self.assertLess(losses[3], losses[0] - 0.05)
        master = self.cluster("master", {"inner": {"reduction": "master"}})
        self.assert_success(master.launch())
        resumed = self.cluster("resumed")
        self.interrupt_after(resumed, 2, 2)
        self.assert_success(resumed.launch("--resume"))
        self.assert_same_trajectory(master, whole)
        self.assert_same_trajectory(resumed, whole)

    def test_pinned_slices(self):
        """Slices on cores of their own train; more threads than cores are refused."""
        core = min(os.sched_getaffinity(0))
        pinned = {index: {"devices": [merge(SLICE, {"cores": [core]})]} for index in range(2)}
        cluster = self.cluster("pinned", sites=pinned)
        self.assert_success(cluster.launch())
        self.assertEqual(sorted(validation_losses(cluster)), [0, 1, 2, 3])
        threads = len(os.sched_getaffinity(0)) + 1
        refused = self.cluster("refused", sites={0: {"pin": True, "devices": [
            {"kind": "cpu", "threads": threads}]}})
        self.assert_end(refused, {"node1": self.start_site(refused, "node1")}, 2)
        self.assertIn(f"pin: devices[0] has {threads} threads", refused.log("node1"))

    def test_a_gpu_is_found_beside_a_processor_that_trains_first(self):
        """Nothing asks LibTorch for GPUs before its CUDA library is there: the one that a library
        in its place has is seen, though the site's first device is a CPU."""
        devices = [{"kind": "cpu", "threads": 1}, {"kind": "cuda", "index": 7}]
        cluster = self.cluster("mixed", {"sites": [{"name": "node1"}]}, {0: {"devices": devices}})
        with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": os.environ["FAKE_GPUS"]}):
            process = self.start_site(cluster, "node1")
        self.assert_end(cluster, {"node1": process}, 2)
        self.assertIn("device cuda:7: this machine has 1 usable NVIDIA GPUs", cluster.log("node1"))

    def test_a_waiting_thread_soon_sleeps(self):
        """OpenMP itself tells how long its threads wait awake. What the user sets counts."""
        ours = {name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
        for given, told in (({}, "GOMP_SPINCOUNT = '1000'"), ({"GOMP_SPINCOUNT": "7"}, "GOMP_SPINCOUNT = '7'"),
                            ({"OMP_WAIT_POLICY": "passive"}, "GOMP_SPINCOUNT = '0'")):
            done = subprocess.run([FARSTEP, "generate", "--help"], capture_output=True, text=True, timeout=60,
                                  check=False, env=ours | given | {"OMP_DISPLAY_ENV": "verbose"})
            self.assert_success(done)
            self.assertIn(told, done.stderr, given)


if __name__ == "__main__":
    unittest.main()
