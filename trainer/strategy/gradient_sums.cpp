#include "trainer/strategy/gradient_sums.h"

#include <algorithm>
#include <array>
#include <utility>

#include "outer_optimizer/codec/make_codec.h"
#include "outer_optimizer/sync_partitions.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

// Returns what each member reduces of each bucket. Equal bytes: every bucket is cut, so that all
// servers work all the time. By layer: a tensor is one server's, in whichever bucket it lies.
std::vector<std::vector<outer_optimizer::Range>> partitions_of(
    const outer_optimizer::SyncConfig& sync, const View& view, const GradientBuckets& buckets,
    int64_t size, std::span<const int64_t> borders) {
  const auto shares = configured_shares(sync, view);
  const auto of_all = outer_optimizer::cut(
      {0, size}, {.rule = sync.partition, .shares = shares, .borders = borders});
  std::vector<std::vector<outer_optimizer::Range>> partitions;
  for (std::size_t number = 0; number < buckets.count(); ++number) {
    const auto [begin, end] = buckets.bucket(number);
    if (sync.partition == outer_optimizer::PartitionRule::kBytes) {
      partitions.push_back(outer_optimizer::cut_by_shares({begin, end}, shares));
      continue;
    }
    auto& ranges = partitions.emplace_back();
    for (const auto& whole : of_all) {
      ranges.push_back({std::clamp(whole.begin, begin, end), std::clamp(whole.end, begin, end)});
    }
  }
  return partitions;
}

}  // namespace

GradientSums::GradientSums(const outer_optimizer::SyncConfig& sync, int64_t bucket_bytes,
                           std::vector<int64_t> borders, Recorder& recorder, const Clock& clock)
    : sync_(sync),
      bucket_bytes_(bucket_bytes),
      borders_(std::move(borders)),
      recorder_(recorder),
      clock_(clock),
      codec_(outer_optimizer::make_codec(sync.codec)) {}

GradientSums::~GradientSums() {
  abandon();
}

void GradientSums::meet(const SumPlan& plan, outer_optimizer::Exchanges& exchanges,
                        std::span<float> gradients) {
  FARSTEP_CHECK(!sum_.valid(), "a step is under way");
  FARSTEP_CHECK(plan.coefficients.size() == plan.view.size(), "{} coefficients for {} sites",
                plan.coefficients.size(), plan.view.size());
  FARSTEP_CHECK(!gradients.empty(), "the gradient is not in host memory");
  plan_ = plan;
  exchanges_ = &exchanges;
  gradients_ = gradients;
  step_ = static_cast<uint32_t>(plan.steps_done);
  const auto size = std::ssize(gradients);
  const auto bucket_values =
      std::max<int64_t>(1, bucket_bytes_ / static_cast<int64_t>(sizeof(float)));
  {
    const std::lock_guard lock(mutex_);
    buckets_.emplace(size, bucket_values);
    partitions_ = partitions_of(sync_, plan.view, *buckets_, size, borders_);
  }
  // Here and not by the worker: in a step this thread uses them too, and may come first.
  exchanges.among(plan.view);
}

void GradientSums::begin_step() {
  FARSTEP_CHECK(!sum_.valid(), "the step before was abandoned");
  ++step_;
  waited_seconds_ = 0;
  {
    const std::lock_guard lock(mutex_);
    buckets_->restart();
  }
  sum_ = worker_.submit([this] {
    exchanges_->among(plan_.view)
        .average_parts({.generation = plan_.view.generation,
                        .round = plan_.round,
                        .fragment = step_,
                        .coefficients = plan_.coefficients,
                        .codec = codec_.get(),
                        .hops = plan_.hops},
                       partitions_, *this, gradients_);
  });
}

void GradientSums::ready(std::size_t device, int64_t begin, int64_t end) {
  FARSTEP_CHECK(device == 0, "device {}: a site has one gradient", device);
  const std::lock_guard lock(mutex_);
  buckets_->add(begin, end);
  changed_.notify_all();
}

bool GradientSums::finish(std::size_t /*device*/) {
  const double began = clock_.now_seconds();
  // Taken first, so that a step that fails leaves nothing under way.
  auto sum = std::exchange(sum_, {});
  try {
    if (plan_.trains()) {
      auto waiting = recorder_.span(SpanCause::kWait, plan_.round);
      wait_for_backward_of_all();
      waiting.finish();
      auto sending = recorder_.span(SpanCause::kWan, plan_.round);
      sum.get();
      sending.finish();
    } else {
      wait_for_backward_of_all();
      sum.get();
    }
  } catch (...) {
    // The worker uses the gradient until its exchange has failed as well.
    if (sum.valid()) sum.wait();
    throw;
  }
  waited_seconds_ = clock_.now_seconds() - began;
  return true;
}

void GradientSums::abandon() {
  const std::lock_guard lock(mutex_);
  is_abandoned_ = true;
  changed_.notify_all();
}

double GradientSums::coefficient() const {
  const bool has_sum =
      plan_.hops != wan::Hops::kThere || configured_shares(sync_, plan_.view)[plan_.view.self] > 0;
  return has_sum ? plan_.coefficients[plan_.view.self] : 0;
}

// The last bucket of a site that is ahead would wait for those of the others, and look like a slow
// line. So each site tells the others when its backward has ended: a byte, beside the buckets.
void GradientSums::wait_for_backward_of_all() {
  const auto& view = plan_.view;
  if (view.size() < 2) return;
  auto& transport = exchanges_->connections(view);
  const wan::Tag tag{.generation = static_cast<uint64_t>(view.generation),
                     .round = static_cast<uint64_t>(plan_.round),
                     .fragment = step_,
                     .phase = outer_optimizer::kEndOfBackwardPhase};
  const std::array<std::byte, 1> mark{};
  std::vector<std::byte> marks(view.size());
  std::vector<std::unique_ptr<wan::Transfer>> transfers;
  for (std::size_t place = 0; place < view.size(); ++place) {
    if (place == view.self) continue;
    const auto peer = static_cast<int>(place);
    transfers.push_back(transport.receive(peer, tag, std::span(marks).subspan(place, 1)));
    transfers.push_back(transport.send(peer, tag, mark));
  }
  for (const auto& transfer : transfers) transfer->wait();
}

bool GradientSums::is_final(std::size_t bucket) const {
  const std::lock_guard lock(mutex_);
  return bucket < buckets_->num_final();
}

void GradientSums::wait_until_final(std::size_t bucket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_abandoned_ || bucket < buckets_->num_final(); });
  if (bucket >= buckets_->num_final()) {
    throw PeerError(plan_.view.own_name(), "this site has abandoned the step");
  }
}

}  // namespace farstep
