// Batches as tensors on a device.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "trainer/data/batch_view.h"

namespace farstep {

at::ScalarType scalar_type(DType dtype);

// Examples [first, first + count) of the batch on `device`: of every part a tensor, (count) and the
// part's shape. Does not wait for a GPU. Throws InternalError if the batch has not so many, or a
// part's memory is not that of its examples.
std::vector<at::Tensor> batch_tensors(const BatchView& batch, int64_t first, int64_t count,
                                      at::Device device);

}  // namespace farstep
