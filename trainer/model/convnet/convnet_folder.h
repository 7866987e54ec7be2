// Opens a trained net for commands other than `train`.
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/checkpoint/hf_folder.h"
#include "trainer/model/convnet/convnet.h"

namespace farstep {

struct OpenedNet {
  ConvNetConfig config;
  std::unique_ptr<ConvNet> net;
};

// Opens the net of a checkpoint in fp32, on a CPU slice of `threads`. Throws DataError.
OpenedNet open_convnet(const HfFolder& folder, int64_t threads);

}  // namespace farstep
