// What a site can find wrong with itself before it joins a run, as a list of checks. `farstep
// check` shows all of them, and `farstep train` makes the same ones.
//
// Not thread-safe: belongs to the thread that opens the site.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/settings/load_config.h"
#include "trainer/tasks/memory_needs.h"

namespace farstep {

// A site, and what the checks have found of it so far. `loaded` must outlive it.
struct CheckedSite {
  // Takes the run from the site's own run file, if it names one. Throws ConfigError.
  explicit CheckedSite(const LoadedSite& site);

  const LoadedSite& loaded;
  std::optional<RunConfig> run;                      // nullopt until the coordinator hands it out
  std::string run_source;                            // for messages
  std::optional<std::vector<ParameterSpec>> layout;  // of the model
  std::optional<heterogeneity::SiteProfile> profile;
  std::optional<heterogeneity::SitePlan> work;  // with which it begins, if it trains
  SiteData data;

  // Returns the digest of the data; nullopt if the site's config names none. Throws DataError.
  std::optional<uint64_t> digest();
  // The site in its run, which must be known.
  SiteOfRun in_run() { return {loaded.site, run.value(), run_source, data}; }
};

// What a check found. A warning is worth a look, and does not keep the site from its run.
struct CheckResult {
  CheckResult(std::string found, bool warns = false, Json of_text = {})
      : text(std::move(found)), is_warning(warns), figures(std::move(of_text)) {}
  CheckResult(const char* found) : text(found) {}

  std::string text;
  bool is_warning = false;
  Json figures;  // those in the text, for programs; null: none
};

struct SiteCheck {
  std::string_view name;
  std::string_view subject;  // what it checks
  bool needs_run;
  // Returns what it found, or nullopt if something that it needs is not known. Throws an Error that
  // names the file and the remedy.
  std::optional<CheckResult> (*look)(CheckedSite& site);
};

// Returns all checks in the order in which they are made: quick ones first.
std::span<const SiteCheck> site_checks();

// Makes all checks for which enough is known, before the site joins. Logs their warnings, and
// throws the first error.
void require_site(CheckedSite& site);

// Makes the checks that need the run, with the one that the coordinator handed out. Throws the
// first error.
void require_run_fits(CheckedSite& site, const RunConfig& run, const std::string& run_source);

}  // namespace farstep
