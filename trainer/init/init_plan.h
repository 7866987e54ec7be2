// What a new run shall be, before any file of it exists, and the defaults of what is not said.
// Values and pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/model/device_config.h"
#include "trainer/model/shape/model_config.h"

namespace farstep {

// A site, and where the others reach it.
struct PlannedSite {
  std::string name;
  std::string address;  // HostPort::host; empty: nobody can connect to it, as behind NAT
  // With keys the site's only port. Without keys the first of its ports; that of the host is the
  // coordinator's, and the site's own begin after it. nullopt: chosen by config_files().
  std::optional<int64_t> port;
  std::optional<DeviceKind> device = {};  // if it is not InitPlan::device

  bool operator==(const PlannedSite&) const = default;
};

// Reads NAME, NAME=HOST or NAME=HOST:PORT; an IPv6 address with a port stands in brackets. Throws
// ConfigError, also for an address by which no other site could reach it.
PlannedSite parse_planned_site(const std::string& text);

// The work of a round, and the model, that suit a kind of device: those of the guide's examples.
struct WorkDefaults {
  ModelPreset preset;
  int64_t rounds, base_steps, base_batch, sequence_length;
  std::optional<int64_t> micro_batch;
};
const WorkDefaults& work_defaults(DeviceKind kind);

// The outer learning rate and momentum that the guide advises for that much work.
struct OuterAdvice {
  double learning_rate, momentum;
};
OuterAdvice outer_advice(int64_t rounds, int64_t base_steps, int64_t tokens_a_step);

struct InitPlan {
  std::string run;                 // its name
  std::vector<PlannedSite> sites;  // in the order of the run file
  std::string host;                // of the coordinator
  std::string data;                // folder; relative to the working folder, unless absolute
  ModelPreset preset = ModelPreset::kTiny;
  std::string model_from;             // folder, as `data`, of a model to start from, not the preset
  std::optional<int64_t> vocabulary;  // if it is not the preset's
  DeviceKind device = DeviceKind::kCpu;  // of sites that have none of their own
  int64_t threads = 1;                   // of a cpu device
  int64_t rounds = 1, base_steps = 1, base_batch = 1, sequence_length = 1;
  std::optional<int64_t> micro_batch;
  bool has_keys = true;
};

// Returns the fewest of so many sites with which a run goes on: one of two, else more than half, so
// that sites that are cut off from most others wait for them.
int64_t least_sites_of(std::size_t num_sites);

// Throws ConfigError, in words of the command line, if the plan cannot become a run.
void check_plan(const InitPlan& plan);

// Sets the devices of the plan as `texts` say: KIND for every site, NAME=KIND for one. Throws
// ConfigError, in words of the command line.
void set_devices(InitPlan& plan, const std::vector<std::string>& texts);

// Returns cuda if a site has a GPU, else cpu: what the defaults of the work follow.
DeviceKind best_device(const InitPlan& plan);

// Returns the site of that name, which is there.
const PlannedSite& site_of(const InitPlan& plan, std::string_view name);

}  // namespace farstep
