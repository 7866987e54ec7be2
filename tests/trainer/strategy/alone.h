// A single site whose exchange the test scripts.
#pragma once

#include <string>
#include <vector>

#include "outer_optimizer/codec/codec.h"
#include "tests/trainer/strategy/replica.h"
#include "trainer/base/error.h"

namespace farstep {

// A single site's exchange, which records its calls and fails if the test says so.
class ScriptedExchange : public DeltaExchange {
 public:
  void average(const outer_optimizer::SyncPoint& point, std::span<float> values,
               const outer_optimizer::ResidualSpans& residuals) override {
    points.push_back(point);
    codecs.emplace_back(point.codec->name());
    std::ranges::fill(residuals.of_delta, 0.25F);
    std::ranges::fill(residuals.of_mean, 0.5F);
    if (!fails) return;
    std::ranges::fill(values, 1000.0F);
    throw PeerError("s9", "site s9: the line went dead");
  }
  bool fails = false;
  std::vector<outer_optimizer::SyncPoint> points;
  std::vector<std::string> codecs;
};

// The first site of a run, without peers, with a scripted exchange.
struct Alone {
  explicit Alone(const RunConfig& run, std::vector<float> start = start_values(11))
      : meeting(1),
        seat(meeting.seat(0)),
        replica(run, 0, std::move(start), *seat, exchange, folder.path(), 1) {}
  TemporaryFolder folder;
  Meeting meeting;
  std::unique_ptr<wan::Rendezvous> seat;
  ScriptedExchange exchange;
  Replica replica;
};

}  // namespace farstep
