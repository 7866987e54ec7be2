// A run of the library is a run as any other to coordinator and peers. What it does not have, such
// as a model, has the defaults of a run file.
#include "trainer/facade/outer_settings.h"

#include <limits>

#include "trainer/base/error.h"
#include "trainer/config/strict_json.h"

namespace farstep {

namespace {

constexpr const char* kRun = "run";
constexpr const char* kSite = "site";

Json parse(std::string_view text, const char* source) {
  try {
    return parse_strictly<Json>(text);
  } catch (const DataError& error) {
    throw ConfigError(fmt::format("{}: {}", source, error.what()));
  }
}

RunConfig full_run(const OuterRunConfig& given) {
  RunConfig run;
  run.name = given.name;
  for (const auto& site : given.sites) run.sites.emplace_back().name = site;
  run.min_sites = given.min_sites;
  run.outer.learning_rate = given.outer.learning_rate;
  run.outer.momentum = given.outer.momentum;
  run.outer.averaging = given.outer.averaging;
  run.outer.rounds = std::numeric_limits<int64_t>::max();  // only the program knows the last one
  run.sync.fragments = given.sync.fragments;
  run.sync.codec = given.sync.codec;
  run.sync.lanes = given.sync.lanes;
  run.deadlines = given.deadlines;
  // A sync ends where it began, and the sites have nothing to agree on besides.
  run.plan.base_steps = given.sync.fragments;
  run.plan.wan_target.reset();
  run.inner.compute = ComputeType::kFP32;
  return run;
}

}  // namespace

OuterSettings read_outer_settings(std::string_view run, std::string_view site, int64_t size) {
  const auto given = read_json<OuterRunConfig>(parse(run, kRun), kRun);
  if (size < given.sync.fragments) {
    JsonPath{kRun, "sync.fragments"}.fail(
        fmt::format("is {}, and there are {} values", given.sync.fragments, size));
  }
  const auto full = run_config_from_json(to_json(full_run(given)), kRun);

  const auto own = read_json<OuterSiteConfig>(parse(site, kSite), kSite);
  if (!own.coordinator.journal.empty()) {
    JsonPath{kSite, "coordinator.journal"}.fail(
        "is for `farstep train`: here a coordinator ends with its process");
  }
  OuterSettings settings{.loaded = {}, .log_level = own.log_level};
  auto& config = settings.loaded.site;
  config.name = own.name;
  config.run = kRun;
  config.coordinator = own.coordinator;
  config.network = own.network;
  config.validate(kSite);
  in_file(kRun, [&] { return full.site_id(own.name); });
  if (config.coordinators().size() > 1) require_majority(full, kRun);
  settings.loaded.run = to_json(full);
  settings.loaded.run_file = kRun;
  settings.loaded.file = kSite;
  return settings;
}

}  // namespace farstep
