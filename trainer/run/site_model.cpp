#include "trainer/run/site_model.h"

#include <utility>
#include <vector>

#include "trainer/checkpoint/train_state.h"
#include "trainer/model/device.h"
#include "trainer/model/matmul/product_choice.h"

namespace farstep {

SiteModel make_site_model(const Task& task, const SiteGround& ground, const RunConfig& run,
                          const std::optional<CheckpointEntry>& resumed) {
  const auto& site = ground.site;
  const auto products = resumed ? load_progress(*resumed).products : Json();
  const auto model_on = [&](std::size_t device) {
    const auto& config = site.devices[device];
    const auto opened = open_device(config);
    // The first device's thread takes its cores later, when no thread can inherit them any more.
    if (device > 0) stay_on_cores(ground.cores[device]);
    // A site that serves alone makes no products.
    if (opened.is_cpu() && run.trains(site.name)) {
      choose_products_once(site.cpu.products, run.inner.compute, resumed ? &products : nullptr);
    }
    return task.make_model(opened, config.recompute);
  };
  SiteModel made{.model = model_on(0), .inner = nullptr};
  task.set_start_values(made.model->parameters(), static_cast<uint64_t>(run.seed));
  // Only the first device's values are made: the others follow it before their first step.
  std::vector<std::unique_ptr<Replica>> replicas;
  for (std::size_t device = 1; device < site.devices.size(); ++device) {
    replicas.push_back(std::make_unique<Replica>([&] { return model_on(device); }));
  }
  made.inner = std::make_unique<InnerStep>(*made.model, run.inner, std::move(replicas),
                                           traits_of(run.strategy.kind).steps_together);
  return made;
}

}  // namespace farstep
