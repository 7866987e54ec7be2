#include "trainer/model/convnet/image_task.h"

#include <utility>

#include "trainer/base/error.h"
#include "trainer/model/convnet/convnet.h"

namespace farstep {

namespace {

// Returns the run's own statistic of the channels, or else the measured one.
std::vector<double> chosen(const std::vector<double>& stated, const std::vector<double>& measured,
                           const JsonPath& path) {
  if (stated.empty()) return measured;
  if (stated.size() != measured.size()) {
    path.fail(
        fmt::format("has {} values; the images have {} channels", stated.size(), measured.size()));
  }
  return stated;
}

std::optional<Augmentation> augmentation_of(const RunConfig& run) {
  const auto& images = run.data.images;
  if (images.crop_padding == 0 && !images.flip) return std::nullopt;
  return Augmentation{
      .padding = images.crop_padding, .flip = images.flip, .seed = static_cast<uint64_t>(run.seed)};
}

}  // namespace

ConvNetConfig convnet_of_run(const RunConfig& run, const std::string& run_source,
                             const ImageData& data) {
  auto config = resolve(run.model.images, data.training.shape, data.classes);
  const auto measured = pixel_statistics(data.training);
  const auto& stated = run.data.images;
  const auto path = JsonPath{run_source, "data.images"};
  config.mean = chosen(stated.mean, measured.mean, path.member("mean"));
  config.deviation = chosen(stated.deviation, measured.deviation, path.member("deviation"));
  return config;
}

ImageTask::ImageTask(const RunConfig& run, ConvNetConfig net, std::shared_ptr<const ImageData> data)
    : data_(std::move(data)), config_(std::move(net)), compute_(run.inner.compute) {
  if (!data_) return;
  training_.emplace(data_->training, config_.statistics(), augmentation_of(run));
  validation_.emplace(data_->validation, config_.statistics(), std::nullopt);
}

std::unique_ptr<TrainableModel> ImageTask::make_model(at::Device device, bool recompute) const {
  return make_convnet(config_, device, compute_, recompute);
}

}  // namespace farstep
