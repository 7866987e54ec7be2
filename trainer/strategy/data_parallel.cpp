#include "trainer/strategy/data_parallel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/sync_partitions.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/strategy/agreement.h"

namespace farstep {

namespace {

// Values that are all there.
class AllFinal : public outer_optimizer::FinalParts {
 public:
  bool is_final(std::size_t /*part*/) const override { return true; }
  void wait_until_final(std::size_t /*part*/) override {}
};

std::vector<int64_t> borders_of(std::span<const TensorStart> tensors) {
  std::vector<int64_t> borders;
  for (const auto& tensor : tensors) borders.push_back(tensor.begin);
  return borders;
}

std::string hash_of(std::span<const float> values) {
  return checksum_text(checksum(std::as_bytes(values)));
}

// Rounding each value is as exact as the gradient itself in bf16. Coarser codecs would lose what
// they leave out, as gradients have no residuals.
bool suits_gradients(outer_optimizer::CodecKind codec) {
  constexpr std::array kKinds{outer_optimizer::CodecKind::kFp32, outer_optimizer::CodecKind::kFp16,
                              outer_optimizer::CodecKind::kBf16};
  return std::ranges::count(kKinds, codec) > 0;
}

// The master is the only one that adds up.
outer_optimizer::SyncConfig with_one_server(outer_optimizer::SyncConfig sync,
                                            DataParallel::Update update) {
  if (update == DataParallel::Update::kAtMaster && sync.servers.size() > 1) sync.servers.resize(1);
  return sync;
}

}  // namespace

DataParallel::DataParallel(Update update, const StrategySettings& settings, const View& view,
                           StartValues values, const Surroundings& surroundings)
    : update_(update),
      sync_(with_one_server(settings.sync, update)),
      outside_(surroundings),
      theta_global_(values.theta.begin(), values.theta.end()),
      momentum_(values.theta.size()),
      sums_(sync_, settings.bucket_bytes, borders_of(values.tensors), surroundings.recorder,
            surroundings.clock) {
  FARSTEP_CHECK(!view.members.empty(), "a run without sites");
}

void DataParallel::check(const StrategySettings& settings, const JsonPath& path) {
  const auto& sync = settings.sync;
  const char* const unfit =
      sync.fragments > 1                                   ? "sync.fragments of 1"
      : sync.delay_steps > 0                               ? "sync.delay_steps of 0"
      : sync.alpha > 0                                     ? "sync.alpha of 0"
      : sync.shares != outer_optimizer::SharesRule::kEqual ? "equal sync.shares"
      : !suits_gradients(sync.codec.kind)                  ? "a sync.codec of fp32, fp16 or bf16"
      : sync.fine_rounds > 0                               ? "no sync.fine_rounds"
                                                           : nullptr;
  if (unfit == nullptr) return;
  path.member("kind").fail(fmt::format("sums whole gradients in every step, and needs {}", unfit));
}

void DataParallel::retune(const outer_optimizer::SyncConfig& /*sync*/,
                          std::span<const double> /*shares*/) {
  throw InternalError("the syncs of data parallelism are not tuned");
}

SumPlan DataParallel::sum_plan(int64_t steps_done) const {
  SumPlan plan{.view = start_->view, .round = start_->round, .steps_done = steps_done};
  double batches = 0;
  for (const auto& site : start_->planned) batches += static_cast<double>(site.batch);
  for (const auto& site : start_->planned) {
    plan.coefficients.push_back(static_cast<double>(site.batch) / batches);
  }
  if (update_ == Update::kAtMaster) plan.hops = wan::Hops::kThere;
  return plan;
}

Synced DataParallel::begin(const RoundStart& start, const heterogeneity::RoundTiming& so_far,
                           const std::stop_token& /*stop*/) {
  const auto steps = start.planned.front().local_steps;
  FARSTEP_CHECK(std::ranges::all_of(start.planned,
                                    [&](const auto& site) { return site.local_steps == steps; }),
                "sites that step together have different numbers of steps");
  start_ = start;
  sums_.meet(sum_plan(so_far.steps), *start.exchanges, start.gradients);
  return {};
}

Synced DataParallel::after_step(double /*learning_rate*/,
                                const heterogeneity::RoundTiming& /*so_far*/,
                                const std::stop_token& /*stop*/) {
  FARSTEP_CHECK(start_, "no round has begun");
  ++progress_.syncs_done;
  ++progress_.work.steps;
  progress_.work.tokens += start_->tokens_per_step;
  Synced synced;
  synced.exposed_seconds = sums_.waited_seconds();
  if (update_ == Update::kAtMaster) synced.exposed_seconds += hand_out_values();
  return synced;
}

double DataParallel::hand_out_values() {
  auto span = outside_.recorder.span(SpanCause::kWan, start_->round);
  const auto& view = start_->view;
  const auto values = theta().pull(whole());
  const std::array partitions{
      outer_optimizer::cut_by_shares(whole(), configured_shares(sync_, view))};
  const outer_optimizer::Fp32Codec codec;
  AllFinal all;
  start_->exchanges->among(view).average_parts(
      {.generation = view.generation,
       .round = start_->round,
       .fragment = static_cast<int64_t>(progress_.work.steps),
       .codec = &codec,
       .hops = wan::Hops::kBack},
      partitions, all, values);
  theta().push(whole(), values);
  return span.finish();
}

void DataParallel::check_work(const wan::Go& go) const {
  check_planned(go, start_->planned, [](const PlannedWork& plan) { return plan.local_steps; });
}

Synced DataParallel::end(const heterogeneity::RoundTiming& so_far, const std::stop_token& stop) {
  FARSTEP_CHECK(start_, "no round has begun");
  // The checkpoint under way still reads theta_global.
  outside_.finish_checkpoint();
  wan::Contribution contribution{.work = progress_.work, .timing = so_far, .fragments = 1};
  contribution.work.batch = so_far.batch;
  const auto values = theta().pull(whole());
  SyncRecord record;
  record.id = {.round = start_->round, .fragment = 0};
  record.theta_hash = hash_of(values);
  const double weight = sum_plan(0).coefficients[start_->view.self];
  auto span =
      outside_.recorder.span(weight > 0 ? SpanCause::kWait : SpanCause::kServe, start_->round);
  auto go = agree(
      outside_.rendezvous, record.id, contribution, hash_of(theta_global_), record.theta_hash,
      [this](const wan::Go& all) { check_work(all); }, stop);
  record.wait_seconds = record.exposed_wait_seconds = span.finish();
  Synced synced;
  synced.is_stopped = !go;
  if (!go) return synced;
  std::ranges::copy(values, theta_global_.begin());
  progress_.work = {};
  record.generation = go->generation;
  record.averaging_weight = weight;
  record.members = std::move(go->sites);
  record.newcomers = std::move(go->newcomers);
  record.contributions = std::move(go->contributions);
  synced.applied.push_back(std::move(record));
  start_.reset();
  return synced;
}

Synced DataParallel::attend(const RoundStart& start, const std::stop_token& /*stop*/) {
  throw PeerError(start.view.own_name(),
                  "a run that sums gradients takes no site in: stop it, and start all sites again");
}

Json DataParallel::state() const {
  return to_json(progress_);
}

void DataParallel::restore(const Json& state) {
  progress_ = read_progress<StepProgress>(state);
}

void DataParallel::drop_steps(std::span<float> theta_local) {
  FARSTEP_CHECK(!start_, "a round is under way");
  progress_.syncs_done -= progress_.work.steps;
  progress_.work = {};
  std::ranges::copy(theta_global_, theta_local.begin());
}

void DataParallel::begin_from_global(std::span<float> theta_local) {
  drop_steps(theta_local);
}

}  // namespace farstep
