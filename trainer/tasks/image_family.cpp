#include "trainer/tasks/image_family.h"

#include <fmt/ranges.h>

#include "trainer/model/convnet/convnet.h"
#include "trainer/model/convnet/image_task.h"

namespace farstep {

namespace {

ConvNetConfig net_of(const SiteOfRun& at) {
  if (at.data.is_named()) return convnet_of_run(at.run, at.run_source, *at.data.images());
  return convnet_from_json(at.data.facts(), "the net for the master's images");
}

}  // namespace

std::vector<ParameterSpec> ImageFamily::layout(const SiteOfRun& at) const {
  return list_net(net_of(at)).layout;
}

PassMemory ImageFamily::pass_memory(const SiteOfRun& at, const DeviceConfig& device,
                                    int64_t examples) const {
  return convnet_pass_memory(net_of(at), {device, at.run.inner.compute, at.run.inner.step},
                             examples);
}

RunData ImageFamily::check_data(const SiteOfRun& at) const {
  const auto data = at.data.images();
  const auto net = net_of(at);
  return {fmt::format("{} images, less mean {:.4f}, over deviation {:.4f}", data->training.size(),
                      fmt::join(net.mean, ", "), fmt::join(net.deviation, ", ")),
          data->training.size()};
}

Json ImageFamily::data_facts(const SiteOfRun& at) const {
  return convnet_to_json(net_of(at));
}

std::unique_ptr<Task> ImageFamily::make_task(const SiteOfRun& at) const {
  return std::make_unique<ImageTask>(at.run, net_of(at),
                                     at.data.is_named() ? at.data.images() : nullptr);
}

}  // namespace farstep
