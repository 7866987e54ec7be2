// A site alone, whose exchange does what the test says.
#pragma once

#include <string>
#include <vector>

#include "outer_optimizer/codec/codec.h"
#include "tests/trainer/strategy/replica.h"
#include "trainer/base/error.h"

namespace farstep {

// An exchange of a site alone that does what it is told, and keeps what it was asked.
class ScriptedExchange : public Exchange {
 public:
  void average(const SyncPoint& point, std::span<float> values,
               const Leftovers& leftovers) override {
    points.push_back(point);
    codecs.emplace_back(point.codec->name());
    std::ranges::fill(leftovers.of_delta, 0.25F);
    std::ranges::fill(leftovers.of_mean, 0.5F);
    if (!fails) return;
    std::ranges::fill(values, 1000.0F);
    throw PeerError("s9", "site s9: the line went dead");
  }
  bool fails = false;
  std::vector<SyncPoint> points;
  std::vector<std::string> codecs;
};

// The first site of a run, which meets nobody, with a scripted exchange.
struct Alone {
  explicit Alone(const RunConfig& run, std::vector<float> start = start_values(11))
      : meeting(1),
        seat(meeting.seat(0)),
        replica(run, 0, std::move(start), *seat, exchange, folder.path()) {}
  TemporaryFolder folder;
  Meeting meeting;
  std::unique_ptr<Rendezvous> seat;
  ScriptedExchange exchange;
  Replica replica;
};

}  // namespace farstep
