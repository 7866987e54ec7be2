#include "trainer/model/convnet/image_task.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

#include "trainer/model/batch_tensors.h"

namespace farstep {

ImageTask::ImageTask(const ImageSet& training, const ImageSet& validation)
    : training_(training), validation_(validation) {}

std::unique_ptr<TrainableModel> ImageTask::make_model(at::Device device) const {
  const ConvNetConfig config{
      .height = training_.height(), .width = training_.width(), .classes = training_.classes()};
  return std::make_unique<ConvNet>(config, device);
}

Batch ImageTask::read(std::span<const int64_t> numbers) const {
  const auto batch = std::make_shared<const ImageBatch>(training_.read(numbers));
  return {batch->view(), batch};
}

Validation ImageTask::validate(TrainableModel& model, const ValidationPart& part) const {
  const at::NoGradGuard no_grad;
  auto& net = dynamic_cast<ConvNet&>(model);
  const auto device = model.parameters().values().device();
  Validation found{.correct = 0};
  std::vector<int64_t> numbers;
  const auto count = [&] {
    if (numbers.empty()) return;
    const auto batch = validation_.read(numbers);
    const auto tensors = batch_tensors(batch.view(), 0, std::ssize(numbers), device);
    const auto logits = net.logits(tensors[0]);
    found.loss_sum +=
        at::cross_entropy_loss(logits, tensors[1], {}, at::Reduction::Sum).item<double>();
    *found.correct += logits.argmax(1).eq(tensors[1]).sum().item<int64_t>();
    found.targets += std::ssize(numbers);
    numbers.clear();
  };
  const int64_t size = validation_.size();
  const int64_t taken = part.examples == 0 ? size : std::min(part.examples, size);
  for (int64_t k = part.part; k < taken; k += part.num_parts) {
    // Evenly spaced, as files often have their images in order of labels.
    numbers.push_back(k * size / taken);
    if (std::ssize(numbers) == part.batch) count();
  }
  count();
  return found;
}

}  // namespace farstep
