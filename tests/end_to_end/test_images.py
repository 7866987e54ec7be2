"""Runs of image classifiers, by every command, on images that this test makes."""

import json
import struct
import unittest
from pathlib import Path

from cluster import Cluster, ClusterTest, by_event, farstep, merge, plain_if_ring, validation_losses

RUN = {"model": {"family": "images", "images": {"width": 4}},
       "data": {"images": {"crop_padding": 1, "flip": True}},
       "inner": {"peak_learning_rate": 0.01}, "outer": {"rounds": 4},
       "plan": {"base_steps": 6, "base_batch": 12, "micro_batch": 5},
       "evaluate": {"every_rounds": 1, "windows": 0}}
CLASSES, SIZE = 4, 8


def write_split(folder: Path, split: str, count: int):
    """Grey images whose one bright quarter, from top to bottom, tells the class."""
    pixels, labels = bytearray(), bytearray()
    for number in range(count):
        label = number * 7 % CLASSES
        for row in range(SIZE):
            bright = row * CLASSES // SIZE == label
            pixels += bytes((200 if bright else 30) + (number + column) % 20 for column in range(SIZE))
        labels.append(label)
    header = struct.pack(">IIII", 0x803, count, SIZE, SIZE)
    (folder / f"{split}-images-idx3-ubyte").write_bytes(header + pixels)
    (folder / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)


def steps_and_rounds(cluster: Cluster, name: str) -> dict:
    """Loss of every step, hash and validation of every round; what was redone replaces the rest."""
    found = {}
    for event in cluster.events(name):
        if event["event"] == "step":
            found["step", event["round"], event["step"]] = event["loss"], event["gradient_norm"]
        elif event["event"] == "round":
            found["round", event["round"]] = event["theta_hash"]
        elif event["event"] == "evaluation":
            found["validation", event["round"]] = event["loss_sum"], event["hits"]
    return found


class Images(ClusterTest):
    """Two sites with unequal batches."""

    def setUp(self):
        super().setUp()
        self.data = self.folder / "images"
        self.data.mkdir()
        write_split(self.data, "train", 200)
        write_split(self.data, "t10k", 41)

    def cluster(self, name: str, run: dict | None = None, sites: dict | None = None,
                batches: tuple[int, ...] = (12, 20)) -> Cluster:
        """The run in a folder of its own. The language model of other tests is left out."""
        folder = self.make_folder(name)
        every = {index: merge({"data": str(self.data)}, sites or {}) for index in range(len(batches))}
        cluster = Cluster(folder, len(batches), {"sites": [{"name": f"node{1 + index}", "batch": batch}
                                                           for index, batch in enumerate(batches)]},
                          every, plain_if_ring(run or {}))
        cluster.run = merge({key: value for key, value in cluster.run.items()
                             if key not in ("model", "data")}, merge(RUN, run or {}))
        (folder / "run.json").write_text(json.dumps(cluster.run))
        return cluster

    def test_images_are_learned_by_every_net(self):
        """One hash at all sites, accuracy in events and report, and the same by `evaluate`."""
        nets = {"resnet18": {}, "vgg16": {"dense": [16]}, "pyramidnet": {"depth": 8, "alpha": 6}}
        for net, fields in nets.items():
            with self.subTest(net=net):
                cluster = self.cluster(net, {"model": {"images": {"preset": net, **fields}}})
                self.assert_success(cluster.launch())
                self.assert_one_theta(cluster)
                start, = by_event(cluster, "node1", "run")
                self.assertEqual((start["unit"], start["sequence_length"]), ("images", 1))
                last = [by_event(cluster, name, "evaluation")[-1] for name in cluster.names]
                self.assertEqual(sum(event["tokens"] for event in last), 41)
                accuracy = sum(event["hits"] for event in last) / 41
                report = cluster.report()
                self.assertEqual(report["final_accuracy"], accuracy)
                losses = validation_losses(cluster)
                self.assertLess(losses[4], losses[0])
                self.assertAlmostEqual(losses[4], report["final_loss"])
                if net != "vgg16":  # which is slow to begin
                    self.assertGreater(accuracy, 0.5)
                result = farstep("evaluate", cluster.output / "node2", "--data", self.data, "--json")
                self.assert_success(result)
                found = json.loads(result.stdout)
                self.assertEqual((found["accuracy"], found["images"]), (accuracy, 41))
                self.assertAlmostEqual(found["loss"], report["final_loss"], places=4)

    def test_images_follow_one_device_by_ring_all_reduce(self):
        """A step of two sites is the step of one that has both batches: no layer mixes images."""
        common = {"outer": {"rounds": 12}, "plan": {"base_steps": 1}, "evaluate": {"every_rounds": 12}}
        whole = self.cluster("whole", merge(common, {"strategy": {"kind": "local_sgd"}}), batches=(32,))
        self.assert_success(whole.launch())
        ring = self.cluster("ring", merge(common, {"strategy": {"kind": "ring_all_reduce",
                                                                "bucket_bytes": 20000}}))
        self.assert_success(ring.launch())
        steps = [by_event(ring, name, "step") for name in ring.names]
        for one, two, wanted in zip(*steps, by_event(whole, "node1", "step"), strict=True):
            self.assertAlmostEqual((12 * one["loss"] + 20 * two["loss"]) / 32, wanted["loss"], delta=1e-4)
        self.assert_one_theta(ring)
        self.assertAlmostEqual(validation_losses(ring)[12], validation_losses(whole)[12], delta=1e-3)

    def test_images_resume_bit_by_bit(self):
        """A run that was stopped in mid-round ends as if it had not been."""
        slow = {"devices": [{"kind": "cpu", "threads": 1, "emulate": {"step_seconds": 0.1}}]}
        run = {"inner": {"compute": "bf16"}, "sync": {"fragments": 2, "delay_steps": 1}}
        whole, cut = self.cluster("whole", run, slow), self.cluster("cut", run, slow)
        self.assert_success(whole.launch())
        self.interrupt_after(cut, 2, 3)
        self.assert_success(cut.launch("--resume"))
        for name in cut.names:
            self.assertEqual(steps_and_rounds(cut, name), steps_and_rounds(whole, name))

    def test_commands_know_images(self):
        """check, profile, plan and report take such a run; generate and export refuse its model."""
        cluster = self.cluster("run", {"outer": {"rounds": 1}})
        checked = farstep("check", cluster.folder / "node1.json")
        self.assert_success(checked)
        for part in ("200 images of 1 x 8 x 8 in 4 classes", "less mean"):
            self.assertIn(part, checked.stdout)
        profile = self.folder / "node1.profile"
        self.assert_success(farstep("profile", "--config", cluster.folder / "node1.json", "--out",
                                    profile, "--seconds", 0.1))
        planned = farstep("plan", "--profiles", profile, "--policy", "hybrid", "--json")
        self.assert_success(planned)
        self.assertEqual(json.loads(planned.stdout)["sites"][0]["local_steps"], 100)
        self.assert_success(cluster.launch())
        page = self.folder / "page.html"
        report = farstep("report", cluster.output, "--html", page)
        self.assert_success(report)
        self.assertIn("accuracy", report.stdout)
        self.assertIn("images/s", report.stdout)
        self.assertIn("<h2>Accuracy (%)</h2>", page.read_text(encoding="utf-8"))
        text = farstep("evaluate", cluster.output / "node1", "--data", self.data)
        self.assertRegex(text.stdout, r"loss [\d.]+, accuracy [\d.]+ %, over 41 images")
        for command in (["generate", "--prompt", "a", "--data", self.data],
                        ["export", "--output", self.folder / "exported"]):
            refused = farstep(command[0], cluster.output / "node1", *command[1:])
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertIn(f"`farstep {command[0]}` is for language models", refused.stderr)

    def test_wrong_image_data_is_refused(self):
        """Other images at one site, token shards, and a damaged file."""
        other = self.folder / "other"
        other.mkdir()
        write_split(other, "train", 201)
        write_split(other, "t10k", 41)
        cluster = self.cluster("digest")
        config = json.loads((cluster.folder / "node2.json").read_text())
        (cluster.folder / "node2.json").write_text(json.dumps(config | {"data": str(other)}))
        refused = cluster.launch()
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("data_digest", refused.stdout + refused.stderr)
        labels = self.data / "t10k-labels-idx1-ubyte"
        labels.write_bytes(labels.read_bytes()[:-1])
        damaged = farstep("check", cluster.folder / "node1.json")
        self.assertEqual(damaged.returncode, 3)
        self.assertIn("t10k-labels-idx1-ubyte: is cut short", damaged.stdout)


if __name__ == "__main__":
    unittest.main()
