// A model family: a kind of model with its kind of data. It makes the task of a run, and finds what
// of run and site does not fit before that.
//
// To add one: a value of ModelFamily, a class of this interface with its task, and a row in
// family_of(). Families have no state; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/model/parameters/parameter_layout.h"
#include "trainer/model/task.h"
#include "trainer/settings/run_config.h"
#include "trainer/settings/site_config.h"
#include "trainer/tasks/pass_memory.h"
#include "trainer/tasks/site_data.h"

namespace farstep {

// A run at a site.
struct SiteOfRun {
  const SiteConfig& site;
  const RunConfig& run;
  const std::string& run_source;  // for messages
  SiteData& data;
};

// What a run finds in a site's data.
struct RunData {
  std::string text;  // "128 windows of 64 tokens"
  int64_t training_examples = 0;
};

class Family {
 public:
  virtual ~Family() = default;

  // Returns where the model's parameters stand, having looked at the folder that it starts from.
  // Throws ConfigError naming `run_source` and the JSON path, or DataError naming a file. Opens the
  // data only if the model depends on it.
  virtual std::vector<ParameterSpec> layout(const SiteOfRun& at) const = 0;
  // Returns what forward and backward of a micro-batch of so many examples take on a device. Throws
  // as layout() does.
  virtual PassMemory pass_memory(const SiteOfRun& at, const DeviceConfig& device,
                                 int64_t examples) const = 0;
  // Returns what the run trains on. Throws ConfigError or DataError if the site's data does not fit
  // the run, or has nothing to validate with.
  virtual RunData check_data(const SiteOfRun& at) const = 0;
  // Returns what a site without data must know of this site's, to make the task. Throws as
  // check_data() does.
  virtual Json data_facts(const SiteOfRun& at) const = 0;
  // Makes the task. Throws as the others do.
  virtual std::unique_ptr<Task> make_task(const SiteOfRun& at) const = 0;
};

// Returns the family of a run.
const Family& family_of(const RunConfig& run);

}  // namespace farstep
