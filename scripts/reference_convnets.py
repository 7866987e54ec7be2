#!/usr/bin/env python3
"""Writes tests/golden/convnets.safetensors: what the convolutional nets must compute, by PyTorch's layers.

For each case: weights, images and labels drawn from a fixed seed, the logits, the mean loss, and every
gradient. The reference runs in float64 on the fp32 values, so that a comparison measures Farstep's
rounding alone.

Needs torch (pip install torch safetensors). Tensors are named CASE/weights/NAME, CASE/gradients/NAME,
CASE/images (B, C, H, W), CASE/logits (B, classes), CASE/loss (all fp32) and CASE/labels (B); the metadata
has CASE/config, as a checkpoint's config.json, and CASE/names, the parameters in order.
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "convnets.safetensors"
BASE = {"model_type": "farstep_convnet", "classes": 10, "norm_groups": 8, "pixels": 0, "dense": [],
        "depth": 0, "alpha": 0, "mean": [0.5], "deviation": [0.25]}

# Name, images, config. Grey and coloured, even and odd sizes, one group and many, one class more than
# channels, dense layers and none, images that are scaled.
CASES: list[tuple[str, int, dict]] = [
    ("resnet18_grey", 3, {"net": "resnet18", "channels": 1, "height": 28, "width": 28, "first_channels": 2}),
    ("resnet18_colour", 2, {"net": "resnet18", "channels": 3, "height": 13, "width": 10, "first_channels": 2,
                            "norm_groups": 3, "classes": 5}),
    ("vgg16_dense", 2, {"net": "vgg16", "channels": 3, "height": 11, "width": 11, "first_channels": 2,
                        "pixels": 40, "dense": [9, 6], "classes": 3}),
    ("vgg16_plain", 3, {"net": "vgg16", "channels": 1, "height": 28, "width": 28, "first_channels": 1}),
    ("pyramidnet", 3, {"net": "pyramidnet", "channels": 3, "height": 15, "width": 12, "first_channels": 5,
                       "depth": 14, "alpha": 13, "classes": 4}),
    ("one_image", 1, {"net": "pyramidnet", "channels": 1, "height": 4, "width": 4, "first_channels": 5,
                      "depth": 8, "alpha": 0, "classes": 2}),
]


def group_norm(channels: int, config: dict) -> nn.GroupNorm:
    """At most so many groups, of two channels or more."""
    groups = max(1, min(config["norm_groups"], channels // 2))
    while channels % groups:
        groups -= 1
    return nn.GroupNorm(groups, channels)


def convolution(inputs: int, outputs: int, stride: int = 1, kernel: int = 3) -> nn.Conv2d:
    """Without bias."""
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class BasicBlock(nn.Module):
    """Of ResNet-18."""

    def __init__(self, inputs: int, outputs: int, stride: int, config: dict):
        super().__init__()
        self.conv1 = convolution(inputs, outputs, stride)
        self.norm1 = group_norm(outputs, config)
        self.conv2 = convolution(outputs, outputs)
        self.norm2 = group_norm(outputs, config)
        self.has_projection = stride != 1 or inputs != outputs
        if self.has_projection:
            self.shortcut = convolution(inputs, outputs, stride, kernel=1)
            self.shortcut_norm = group_norm(outputs, config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of branch and shortcut."""
        y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        return torch.relu(y + (self.shortcut_norm(self.shortcut(x)) if self.has_projection else x))


class ResNet18(nn.Module):
    """With a first convolution of 3 x 3 and no pooling after it."""

    def __init__(self, config: dict):
        super().__init__()
        width = config["first_channels"]
        self.conv = convolution(config["channels"], width)
        self.norm = group_norm(width, config)
        self.stage0 = nn.Sequential(BasicBlock(width, width, 1, config), BasicBlock(width, width, 1, config))
        for stage, times in ((1, 2), (2, 4), (3, 8)):
            blocks = nn.Sequential(BasicBlock(times * width // 2, times * width, 2, config),
                                   BasicBlock(times * width, times * width, 1, config))
            setattr(self, f"stage{stage}", blocks)
        self.head = nn.Linear(8 * width, config["classes"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = torch.relu(self.norm(self.conv(x)))
        x = self.stage3(self.stage2(self.stage1(self.stage0(x))))
        return self.head(x.mean((2, 3)))


class VGG16(nn.Module):
    """Thirteen convolutions and five poolings, then dense layers."""

    PLAN = (1, 1, "pool", 2, 2, "pool", 4, 4, 4, "pool", 8, 8, 8, "pool", 8, 8, 8, "pool")

    def __init__(self, config: dict):
        super().__init__()
        self.scale = config["pixels"]
        channels, number = config["channels"], 0
        side = [self.scale or config["height"], self.scale or config["width"]]
        for times in self.PLAN:
            if times == "pool":
                side = [-(-length // 2) for length in side]
                continue
            outputs = times * config["first_channels"]
            setattr(self, f"conv{number}", convolution(channels, outputs))
            setattr(self, f"norm{number}", group_norm(outputs, config))
            channels, number = outputs, number + 1
        width = channels * side[0] * side[1]
        self.num_dense = len(config["dense"])
        for index, outputs in enumerate(config["dense"]):
            setattr(self, f"dense{index}", nn.Linear(width, outputs))
            width = outputs
        self.head = nn.Linear(width, config["classes"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        if self.scale:
            x = functional.interpolate(x, (self.scale, self.scale), mode="bilinear")
        number = 0
        for times in self.PLAN:
            if times == "pool":
                x = functional.max_pool2d(x, 2, ceil_mode=True)
            else:
                x = torch.relu(getattr(self, f"norm{number}")(getattr(self, f"conv{number}")(x)))
                number += 1
        x = x.flatten(1)
        for index in range(self.num_dense):
            x = torch.relu(getattr(self, f"dense{index}")(x))
        return self.head(x)


class PyramidBlock(nn.Module):
    """Norm, convolution, norm, ReLU, convolution, norm."""

    def __init__(self, inputs: int, outputs: int, stride: int, config: dict):
        super().__init__()
        self.norm1 = group_norm(inputs, config)
        self.conv1 = convolution(inputs, outputs, stride)
        self.norm2 = group_norm(outputs, config)
        self.conv2 = convolution(outputs, outputs)
        self.norm3 = group_norm(outputs, config)
        self.stride, self.missing = stride, outputs - inputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of branch and shortcut, whose missing channels are zeros."""
        y = self.norm3(self.conv2(torch.relu(self.norm2(self.conv1(self.norm1(x))))))
        shortcut = functional.avg_pool2d(x, 2, ceil_mode=True) if self.stride == 2 else x
        return y + functional.pad(shortcut, (0, 0, 0, 0, 0, self.missing))


class PyramidNet(nn.Module):
    """Additive, of basic blocks."""

    def __init__(self, config: dict):
        super().__init__()
        self.num_blocks = (config["depth"] - 2) // 2
        channels = config["first_channels"]
        self.conv = convolution(config["channels"], channels)
        self.norm = group_norm(channels, config)
        for block in range(self.num_blocks):
            outputs = config["first_channels"] + (block + 1) * config["alpha"] // self.num_blocks
            stride = 2 if block in (self.num_blocks // 3, 2 * (self.num_blocks // 3)) else 1
            setattr(self, f"block{block}", PyramidBlock(channels, outputs, stride, config))
            channels = outputs
        self.last_norm = group_norm(channels, config)
        self.head = nn.Linear(channels, config["classes"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = self.norm(self.conv(x))
        for block in range(self.num_blocks):
            x = getattr(self, f"block{block}")(x)
        return self.head(torch.relu(self.last_norm(x)).mean((2, 3)))


NETS = {"resnet18": ResNet18, "vgg16": VGG16, "pyramidnet": PyramidNet}


def build(config: dict) -> nn.Module:
    """The net in float64; its weights are fp32 values, and its norms are not all ones."""
    net = NETS[config["net"]](config).double()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            scale = 0.2 if parameter.dim() == 1 else (2 / parameter[0].numel()) ** 0.5
            mean = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            parameter.copy_((mean + scale * torch.randn(parameter.shape)).float())
    return net


def main() -> None:
    """Computes every case and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=GOLDEN)
    out: Path = parser.parse_args().out

    torch.manual_seed(5)
    tensors: dict[str, torch.Tensor] = {}
    metadata: dict[str, str] = {}
    for case, batch, changes in CASES:
        config = BASE | changes
        config |= {name: config[name] * config["channels"] for name in ("mean", "deviation")}
        net = build(config)
        images = torch.randn(batch, config["channels"], config["height"], config["width"])
        labels = torch.randint(0, config["classes"], (batch,))
        logits = net(images.double())
        loss = functional.cross_entropy(logits, labels)
        loss.backward()
        for name, parameter in net.named_parameters():
            tensors[f"{case}/weights/{name}"] = parameter.detach().float()
            tensors[f"{case}/gradients/{name}"] = parameter.grad.float()
        tensors |= {f"{case}/images": images, f"{case}/labels": labels, f"{case}/logits": logits.detach().float(),
                    f"{case}/loss": loss.detach().float().reshape(1)}
        names = [name for name, _ in net.named_parameters()]
        metadata |= {f"{case}/config": json.dumps(config), f"{case}/names": json.dumps(names)}
        print(f"{case}: loss {loss.item():.6f}, {sum(p.numel() for p in net.parameters())} parameters")
    save_file(tensors, out, metadata=metadata)
    print(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
