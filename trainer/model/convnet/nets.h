// The image classifiers, each as a function over their layers. It takes images and returns
// logits, (B, classes).
//
// Not thread-safe, as the layers are not.
#pragma once

#include "trainer/model/convnet/layers.h"
#include "trainer/model/shape/convnet_config.h"

namespace farstep {

// ResNet-18 (He et al. 2016, table 1) for small images: with the first layer of section 4.2, a
// convolution of 3 x 3 at stride 1 without pooling after it. Then four stages of two basic blocks,
// of 1, 2, 4 and 8 times the first channels. A shortcut between two widths is a convolution of
// 1 x 1 (option B). The last norm of each block begins with factor 0, so that the net begins as
// its shortcuts (Goyal et al. 2017, section 5.1).
Feature resnet18(const Layers& layers, const Feature& images, const ConvNetConfig& config);

// VGG-16 (Simonyan and Zisserman 2015, configuration D): thirteen convolutions of 3 x 3 with five
// max-poolings, then dense layers. With norms after the convolutions, and without dropout, whose
// random state a resumed run would need.
Feature vgg16(const Layers& layers, const Feature& images, const ConvNetConfig& config);

// PyramidNet (Han et al. 2017): additive, of basic blocks, in its form for small images. Block k of
// N = (depth - 2) / 2 has floor(first channels + k alpha / N) channels. A block is norm,
// convolution, norm, ReLU, convolution, norm. Its shortcut has no parameters: channels that it
// lacks are zeros, and at stride 2 it takes the mean of 2 x 2 pixels.
Feature pyramidnet(const Layers& layers, const Feature& images, const ConvNetConfig& config);

// The net of the config, of images that are scaled first if it says so.
Feature net(const Layers& layers, const Feature& images, const ConvNetConfig& config);

}  // namespace farstep
