// The model of a run as the probes of a device need it: to be trained on random examples, and as
// the matrix products of its forward pass.
//
// Belongs to the calling thread; const methods are thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "heterogeneity/profile/matrix_products.h"
#include "trainer/data/batch_view.h"
#include "trainer/model/trainable_model.h"
#include "trainer/settings/run_config.h"
#include "trainer/settings/site_config.h"

namespace farstep {

class ProbedModel {
 public:
  virtual ~ProbedModel() = default;

  virtual int64_t num_parameters() const = 0;
  // Makes the model on an open device, all parameters 0, as Task::make_model() does.
  virtual std::unique_ptr<TrainableModel> make(at::Device device, bool recompute) const = 0;
  // Returns examples as the run has them, of random content.
  virtual Batch random_batch(int64_t examples, std::minstd_rand& random) const = 0;
  // Returns the matrix products of a forward pass, each as often as it multiplies one row, and how
  // many rows an example has at most.
  virtual std::vector<heterogeneity::MatrixProduct> products() const = 0;
  virtual int64_t rows_per_example() const = 0;
};

// Returns the model of the run at a site. Throws ConfigError naming `run_source` and the JSON path,
// or DataError naming a file of the folder that the model starts from, or of images.
std::unique_ptr<ProbedModel> probed_model(const SiteConfig& site, const RunConfig& run,
                                          const std::string& run_source);

}  // namespace farstep
