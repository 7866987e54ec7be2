#include "heterogeneity/knowledge/site_knowledge.h"

#include <algorithm>

#include "heterogeneity/knowledge/batch_split.h"

namespace farstep::heterogeneity {

namespace {

// Returns the largest value of one figure of the profile's links. A slow link may be slow because
// of the peer. The fastest one shows what the own uplink carries at least.
std::optional<double> largest(const SiteKnowledge& site,
                              std::optional<double> LinkProfile::*figure) {
  std::optional<double> found;
  if (!site.profile) return found;
  for (const auto& link : site.profile->links) {
    if (link.*figure) found = std::max(found.value_or(0), *(link.*figure));
  }
  return found;
}

}  // namespace

// A site's step lasts as long as its slowest device, so one device without times leaves all
// unknown.
StepPredictor::StepPredictor(const SiteKnowledge& site) {
  if (site.profile) {
    num_devices_ = site.profile->devices.size();
    for (const auto& device : site.profile->devices) {
      const auto fit = fit_step_time(device.step_seconds);
      if (!fit) {
        fits_.clear();
        break;
      }
      fits_.push_back(*fit);
    }
  }
  if (site.seen) see(*site.seen);
}

// One measured step corrects the profile's level; the profile keeps the shape over batches.
void StepPredictor::see(const SeenStep& seen) {
  seen_ = seen;
  if (has_fits()) scale_ = seen.seconds / fitted_seconds(seen.batch, seen.micro_batch);
}

// By the line, not the table: with a cost that is linear in the batch, the devices' common finish
// has a closed form.
std::vector<int64_t> StepPredictor::shares(int64_t batch, int64_t micro_batch) const {
  // A device whose steps were not seen to grow with the batch still gets a part of it.
  // split_batch() divides by the growth.
  constexpr double kLeastGrowth = 1e-6;
  std::vector<DeviceCost> costs;
  for (const auto& fit : fits_) {
    const double growth =
        fit.sequence_seconds + fit.micro_batch_seconds / static_cast<double>(micro_batch);
    costs.push_back({fit.step_seconds, std::max(growth, kLeastGrowth * fit.step_seconds)});
  }
  return split_batch(batch, costs);
}

double StepPredictor::fitted_seconds(int64_t batch, int64_t micro_batch) const {
  if (fits_.size() == 1) return fits_[0].seconds(batch, micro_batch);
  const auto split = shares(batch, micro_batch);
  double slowest = 0;
  for (std::size_t device = 0; device < fits_.size(); ++device) {
    if (split[device] == 0) continue;
    slowest = std::max(slowest, fits_[device].seconds(split[device], micro_batch));
  }
  return slowest;
}

// Without a profile a larger batch is assumed to take proportionally longer, and a smaller one as
// long.
std::optional<double> StepPredictor::seconds(int64_t batch, int64_t micro_batch) const {
  if (has_fits()) return scale_ * fitted_seconds(batch, micro_batch);
  if (!seen_) return std::nullopt;
  return seen_->seconds *
         std::max(1.0, static_cast<double>(batch) / static_cast<double>(seen_->batch));
}

int64_t StepPredictor::least_timed_batch() const {
  if (!has_fits()) return seen_->batch;
  // Each device has at least this much of it.
  const auto least = std::ranges::max_element(fits_, {}, &StepTimeFit::least_batch);
  return least->least_batch * static_cast<int64_t>(fits_.size());
}

int64_t StepPredictor::largest_share(int64_t batch, int64_t micro_batch) const {
  if (has_fits()) {
    const auto split = shares(batch, micro_batch);
    return *std::max_element(split.begin(), split.end());
  }
  const auto devices = static_cast<int64_t>(num_devices_);
  return (batch + devices - 1) / devices;
}

std::vector<StepPredictor> predictors_of(std::span<const SiteKnowledge> sites) {
  std::vector<StepPredictor> predictors;
  predictors.reserve(sites.size());
  for (const auto& site : sites) predictors.emplace_back(site);
  return predictors;
}

std::optional<double> step_seconds(const SiteKnowledge& site, int64_t batch, int64_t micro_batch) {
  return StepPredictor(site).seconds(batch, micro_batch);
}

std::optional<double> uplink_bits_per_second(const SiteKnowledge& site) {
  const auto& seen = site.seen_links.uplink_bits_per_second;
  return seen ? seen : largest(site, &LinkProfile::bandwidth_bits_per_second);
}

std::optional<double> rtt_seconds(const SiteKnowledge& site) {
  const auto& seen = site.seen_links.rtt_seconds;
  return seen ? seen : largest(site, &LinkProfile::rtt_seconds);
}

std::optional<int64_t> most_micro_batch(const SiteKnowledge& site) {
  std::optional<int64_t> most;
  if (!site.profile) return most;
  for (const auto& device : site.profile->devices) {
    if (!device.max_micro_batch) continue;
    most = most ? std::min(*most, *device.max_micro_batch) : *device.max_micro_batch;
  }
  return most;
}

std::optional<double> total_tflops(const SiteKnowledge& site) {
  if (!site.profile) return std::nullopt;
  double sum = 0;
  for (const auto& device : site.profile->devices) {
    const auto speed = tflops(device);
    if (!speed) return std::nullopt;
    sum += *speed;
  }
  return sum;
}

}  // namespace farstep::heterogeneity
