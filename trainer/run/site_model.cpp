#include "trainer/run/site_model.h"

#include <utility>
#include <vector>

#include "trainer/checkpoint/hf_folder.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/model/device.h"
#include "trainer/model/make_model.h"
#include "trainer/model/product_choice.h"
#include "trainer/peers/site_peers.h"
#include "trainer/run/model_folder.h"
#include "trainer/run/model_shape.h"

namespace farstep {

SiteModel make_site_model(const SiteGround& ground, const RunConfig& run,
                          const std::optional<CheckpointEntry>& resumed) {
  const auto& site = ground.site;
  const auto shape = model_shape(site, run, std::string(kRunSource));
  const auto products = resumed ? load_progress(*resumed).products : Json();
  const auto model_on = [&](std::size_t device) {
    const auto& config = site.devices[device];
    const auto opened = open_device(config);
    if (device > 0) stay_on_cores(ground.cores[device]);
    if (opened.is_cpu()) {
      choose_products_once(site.cpu.products, run.inner.compute, resumed ? &products : nullptr);
    }
    return make_model(shape, opened, run.inner.compute, run.inner.step, config.recompute);
  };
  SiteModel made{.model = model_on(0), .inner = nullptr};
  auto& parameters = made.model->parameters();
  if (run.model.from.empty()) {
    parameters.initialise(static_cast<uint64_t>(run.seed));
  } else {
    load_parameters(read_hf_folder(model_source(site, run)),
                    named_parameters(parameters.layout(), parameters.host_values().pull()));
    parameters.host_values().push();
  }
  std::vector<std::unique_ptr<Replica>> replicas;
  for (std::size_t device = 1; device < site.devices.size(); ++device) {
    replicas.push_back(std::make_unique<Replica>([&] { return model_on(device); }));
  }
  made.inner = std::make_unique<InnerStep>(*made.model, run.inner, std::move(replicas));
  return made;
}

}  // namespace farstep
