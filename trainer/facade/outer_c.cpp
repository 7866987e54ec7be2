// Exceptions end here: each becomes a status, and a text that the thread keeps.
#include "trainer/facade/outer_c.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/facade/outer_site.h"

// The handle: it owns the site, and the names that were handed out.
struct farstep_outer {
  farstep::OuterSite site;
};

namespace farstep {

namespace {

struct LastError {
  std::string text, site;
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

int keep_error(int status, const std::string& text, const std::string& site = "") {
  last_error() = {text, site};
  return status;
}

// Returns what `call` returns, or the status of its exception.
template <typename Call>
int with_status(Call&& call) {
  try {
    return call();
  } catch (const PeerError& error) {
    return keep_error(FARSTEP_PEER, error.what(), error.site());
  } catch (const Error& error) {
    return keep_error(error.exit_code(), error.what());
  } catch (const std::exception& error) {
    return keep_error(FARSTEP_INTERNAL, error.what());
  }
}

void require_given(const void* argument, const char* name) {
  if (argument == nullptr) throw ConfigError(fmt::format("{} is NULL", name));
}

std::size_t checked_size(int64_t size, const OuterSite& site) {
  if (size != site.size()) {
    throw ConfigError(fmt::format("{} values, and the run trains {}", size, site.size()));
  }
  return static_cast<std::size_t>(size);
}

farstep_outer_round round_of(const SyncRecord& record) {
  farstep_outer_round round{.round = record.id.round,
                            .generation = record.generation,
                            .sites = std::ssize(record.members),
                            .averaging_weight = record.averaging_weight,
                            .wait_seconds = record.wait_seconds,
                            .exchange_seconds = record.wan_seconds,
                            .hash = {}};
  record.theta_hash.copy(round.hash, sizeof(round.hash) - 1);
  return round;
}

}  // namespace

}  // namespace farstep

const char* farstep_outer_version() {
  return FARSTEP_VERSION;
}

const char* farstep_outer_error() {
  return farstep::last_error().text.c_str();
}

const char* farstep_outer_error_site() {
  return farstep::last_error().site.c_str();
}

int farstep_outer_join(const char* run, const char* site, const float* values, int64_t size,
                       farstep_outer** joined) {
  return farstep::with_status([&] {
    farstep::require_given(joined, "joined");
    *joined = nullptr;
    farstep::require_given(run, "run");
    farstep::require_given(site, "site");
    farstep::require_given(values, "values");
    if (size <= 0) throw farstep::ConfigError(fmt::format("{} values: there must be some", size));
    *joined = new farstep_outer{{run, site, {values, static_cast<std::size_t>(size)}}};
    return FARSTEP_OK;
  });
}

int farstep_outer_sync(farstep_outer* site, float* values, int64_t size,
                       const farstep_outer_work* work, farstep_outer_round* round) {
  return farstep::with_status([&] {
    farstep::require_given(site, "site");
    farstep::require_given(values, "values");
    farstep::require_given(work, "work");
    const auto record =
        site->site.sync({values, farstep::checked_size(size, site->site)},
                        {.steps = work->steps, .batch = work->batch, .tokens = work->tokens});
    if (!record) return farstep::keep_error(FARSTEP_STOPPED, "the sync was stopped");
    if (round != nullptr) *round = farstep::round_of(*record);
    return int{FARSTEP_OK};
  });
}

void farstep_outer_stop(farstep_outer* site) {
  if (site != nullptr) site->site.stop();
}

int64_t farstep_outer_members(const farstep_outer* site) {
  return site == nullptr ? 0 : std::ssize(site->site.view().members);
}

int64_t farstep_outer_place(const farstep_outer* site) {
  return site == nullptr ? -1 : static_cast<int64_t>(site->site.view().self);
}

const char* farstep_outer_member(const farstep_outer* site, int64_t place) {
  if (site == nullptr || place < 0 || place >= farstep_outer_members(site)) return nullptr;
  return site->site.view().members[static_cast<std::size_t>(place)].c_str();
}

int farstep_outer_get_momentum(const farstep_outer* site, float* momentum, int64_t size) {
  return farstep::with_status([&] {
    farstep::require_given(site, "site");
    farstep::require_given(momentum, "momentum");
    farstep::checked_size(size, site->site);
    std::ranges::copy(site->site.momentum(), momentum);
    return FARSTEP_OK;
  });
}

int farstep_outer_set_momentum(farstep_outer* site, const float* momentum, int64_t size) {
  return farstep::with_status([&] {
    farstep::require_given(site, "site");
    farstep::require_given(momentum, "momentum");
    site->site.set_momentum({momentum, farstep::checked_size(size, site->site)});
    return FARSTEP_OK;
  });
}

int farstep_outer_leave(farstep_outer* site, const char* failure) {
  return farstep::with_status([&] {
    farstep::require_given(site, "site");
    site->site.leave(failure == nullptr ? std::nullopt : std::optional<std::string>(failure));
    return FARSTEP_OK;
  });
}

void farstep_outer_free(farstep_outer* site) {
  delete site;
}
