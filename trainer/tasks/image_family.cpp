#include "trainer/tasks/image_family.h"

#include <fmt/ranges.h>

#include "trainer/model/convnet/convnet.h"
#include "trainer/model/convnet/image_task.h"

namespace farstep {

std::vector<ParameterSpec> ImageFamily::layout(const SiteOfRun& at) const {
  return list_net(convnet_of_run(at.run, at.run_source, *at.data.images())).layout;
}

std::string ImageFamily::check_data(const SiteOfRun& at) const {
  const auto data = at.data.images();
  const auto net = convnet_of_run(at.run, at.run_source, *data);
  return fmt::format("{} images, less mean {:.4f}, over deviation {:.4f}", data->training.size(),
                     fmt::join(net.mean, ", "), fmt::join(net.deviation, ", "));
}

std::unique_ptr<Task> ImageFamily::make_task(const SiteOfRun& at) const {
  return std::make_unique<ImageTask>(at.run, at.run_source, at.data.images());
}

}  // namespace farstep
