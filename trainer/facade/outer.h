// The outer optimizer of Farstep for C++ programs with a training loop of their own.
//
// Each of N sites is one process. It takes inner steps with an optimizer of its own on flat fp32
// values in host memory, and then calls Site::sync(): the sites' deltas are averaged, the outer
// Nesterov step is taken, and all sites go on from the same bits (DiLoCo, Douillard et al. 2023).
// docs/library.md explains settings, losses and deadlines, and has an example.
//
// Everything is inline over the C interface beside it, so that the program may have another C++
// library than Farstep was built with. Belongs to one thread, except Site::stop().
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <farstep/outer_c.h>

namespace farstep::outer {

// A failed call: what happened and what to do.
class Error : public std::runtime_error {
 public:
  Error(int status, const std::string& message, std::string site)
      : std::runtime_error(message), status_(status), site_(std::move(site)) {}
  // FARSTEP_CONFIG, FARSTEP_PEER, ...: the exit codes of the command `farstep`.
  int status() const { return status_; }
  // The lost site; empty if there is none, or it is the coordinator.
  const std::string& site() const { return site_; }

 private:
  int status_;
  std::string site_;
};

using Work = farstep_outer_work;    // {.steps, .batch, .tokens} since the last sync
using Round = farstep_outer_round;  // what a sync did

class Site {
 public:
  // Joins a run with the values from which all sites start. Waits for all sites. `run` and `site`
  // are JSON texts. Throws Error.
  Site(const std::string& run, const std::string& site, std::span<const float> values) {
    check(farstep_outer_join(run.c_str(), site.c_str(), values.data(),
                             static_cast<int64_t>(values.size()), &site_));
  }
  // Without leave() before, the others count this site as lost.
  ~Site() { farstep_outer_free(site_); }
  Site(Site&& other) noexcept : site_(std::exchange(other.site_, nullptr)) {}
  Site& operator=(Site&& other) noexcept {
    std::swap(site_, other.site_);
    return *this;
  }

  // Ends an outer round: replaces what this site's inner steps made of the newest common values by
  // the next common ones. Waits for the other sites. Throws Error, with `values` unchanged.
  Round sync(std::span<float> values, const Work& work) {
    Round round{};
    check(farstep_outer_sync(site_, values.data(), static_cast<int64_t>(values.size()), &work,
                             &round));
    return round;
  }

  // Ends the wait of a sync, present or future, for other sites: it throws an Error whose status is
  // FARSTEP_STOPPED. Any thread may call it.
  void stop() { farstep_outer_stop(site_); }

  // The members after the newest sync, or at the start, in their order; and this site's place.
  std::vector<std::string> members() const {
    std::vector<std::string> names;
    for (int64_t i = 0; i < farstep_outer_members(site_); ++i) {
      names.emplace_back(farstep_outer_member(site_, i));
    }
    return names;
  }
  std::size_t place() const { return static_cast<std::size_t>(farstep_outer_place(site_)); }

  // The outer momentum, for a checkpoint: copied out, or in before the first sync, equally at all
  // sites. As many values as the run has. Throw Error.
  void get_momentum(std::span<float> momentum) const {
    check(
        farstep_outer_get_momentum(site_, momentum.data(), static_cast<int64_t>(momentum.size())));
  }
  void set_momentum(std::span<const float> momentum) {
    check(
        farstep_outer_set_momentum(site_, momentum.data(), static_cast<int64_t>(momentum.size())));
  }

  // Leaves the run, which is done here, or in which this site has failed. Throw Error.
  void leave() { check(farstep_outer_leave(site_, nullptr)); }
  void leave(const std::string& failure) { check(farstep_outer_leave(site_, failure.c_str())); }

 private:
  static void check(int status) {
    if (status == FARSTEP_OK) return;
    throw Error(status, farstep_outer_error(), farstep_outer_error_site());
  }

  farstep_outer* site_ = nullptr;
};

}  // namespace farstep::outer
