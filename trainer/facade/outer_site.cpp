// The parts are those of `farstep train`, without what a training loop of its own does: the peers,
// and the sync of trainer/strategy. Fragments are exchanged one after the other; theta_local is
// replaced when all of them count, so that the caller's values are old or new as a whole.
#include "trainer/facade/outer_site.h"

#include <algorithm>
#include <utility>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/log.h"
#include "trainer/peers/agreed_start.h"

namespace farstep {

namespace {

constexpr const char* kGoesOn =
    "the run goes on without this site, and a program with a loop of its own cannot join it any "
    "more: begin a new run at all sites, from the values of one that is left";

}  // namespace

OuterSite::OuterSite(std::string_view run, std::string_view site, std::span<const float> start)
    : recorder_({}, "", clock_) {
  if (start.empty()) throw ConfigError("there are no values to train");
  const auto settings = read_outer_settings(run, site, std::ssize(start));
  set_up_log(settings.loaded.site.name, settings.log_level);
  wan::JoinRequest request;
  request.run = settings.loaded.run;
  peers_ = SitePeers::join(settings.loaded, request, clock_, {});
  peers_->telling_failure([&] {
    if (peers_->is_newcomer()) throw PeerError("", kGoesOn);
    peers_->open_exchanges();
    sync_ = std::make_unique<OuterSync>(
        strategy_settings(peers_->run()), peers_->view(),
        StartValues{.theta = start, .tensors = {{.name = "the values", .begin = 0}}},
        Surroundings{.rendezvous = peers_->rendezvous(), .recorder = recorder_, .clock = clock_});
    require_same_start(checksum_text(checksum(std::as_bytes(start))),
                       "start all sites from the same values, such as a checkpoint or a seed",
                       peers_->view(), peers_->store());
  });
  peers_->set_activity(1, 0, "training");
}

OuterSite::~OuterSite() = default;

void OuterSite::set_momentum(std::span<const float> momentum) {
  if (rounds_done_ > 0 || has_left_) {
    throw ConfigError("the outer momentum can be set before the first sync only");
  }
  std::ranges::copy(momentum, sync_->outer().mutable_momentum().begin());
}

std::optional<SyncRecord> OuterSite::sync(std::span<float> values,
                                          const outer_optimizer::Work& work) {
  if (has_left_) throw ConfigError("this site has left its run: it takes part in no sync any more");
  if (std::ssize(values) != size()) {
    throw ConfigError(
        fmt::format("a sync of {} values, and the run trains {}", values.size(), size()));
  }
  if (work.steps < 0 || work.batch < 0 || work.tokens < 0) {
    throw ConfigError(
        fmt::format("work of {} steps, a batch of {} and {} tokens: none may be "
                    "below 0",
                    work.steps, work.batch, work.tokens));
  }
  try {
    auto record = exchange(values, work);
    if (!record) return std::nullopt;
    ++rounds_done_;
    peers_->set_activity(rounds_done_ + 1, 0, "training");
    std::ranges::copy(sync_->outer().theta_global(), values.begin());
    return record;
  } catch (const PeerError& error) {
    leave_as(Outcome::kPeerLost, error.what());
    throw;
  } catch (const std::exception& error) {
    leave_as(Outcome::kFailed, error.what());
    throw;
  }
}

std::optional<SyncRecord> OuterSite::exchange(std::span<const float> values,
                                              const outer_optimizer::Work& work) {
  const auto fragments = sync_->config().fragments;
  peers_->set_activity(rounds_done_ + 1, work.steps, "at the sync");
  // The learning rates are the caller's own. By steps deltas can be compared as well.
  auto counted = work;
  counted.rates = static_cast<double>(work.steps);
  std::optional<SyncRecord> newest;
  for (int64_t fragment = 0; fragment < fragments; ++fragment) {
    const wan::SyncId id{.round = rounds_done_ + 1, .fragment = fragment};
    const auto range = sync_->fragment_range(fragment);
    // A sync that loses a site takes the delta once more.
    const auto take_delta = [=, this](std::span<float> delta) {
      const int64_t bad = sync_->outer().delta(range, part(values, range), delta);
      if (bad >= 0) sync_->refuse_delta(id, bad);
    };
    sync_->meet(peers_->view(), peers_->exchanges());
    sync_->send(id, {.work = counted, .fragments = fragments}, {.take_delta = take_delta});
    auto record = sync_->receive(id.round, stop_.get_token());
    if (!record) return std::nullopt;
    peers_->adopt(record->generation, record->members);
    peers_->take_new_views();  // nobody looks at how they came about
    if (newest) {
      record->wait_seconds += newest->wait_seconds;
      record->wan_seconds += newest->wan_seconds;
    }
    newest = std::move(record);
  }
  sync_->drop_spent_residuals();
  return newest;
}

void OuterSite::leave(const std::optional<std::string>& failure) {
  if (failure) {
    leave_as(Outcome::kFailed, *failure);
  } else {
    leave_as(stop_.stop_requested() ? Outcome::kInterrupted : Outcome::kDone, "");
  }
}

void OuterSite::leave_as(Outcome outcome, const std::string& message) {
  if (std::exchange(has_left_, true)) return;
  const auto& deadlines = peers_->run().deadlines;
  peers_->leave(outcome, message,
                outcome == Outcome::kDone ? deadlines.join_seconds : deadlines.leave_seconds);
}

}  // namespace farstep
