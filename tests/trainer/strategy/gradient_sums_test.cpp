#include "trainer/strategy/gradient_sums.h"

#include <optional>

#include "outer_optimizer/exchange/direct_exchange.h"
#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_transport.h"
#include "tests/support/temporary_folder.h"
#include "tests/wan/transport/run_ranks.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

// A site's links, which among() makes for a new view, as those over the network.
class NewLinks : public outer_optimizer::Exchanges {
 public:
  explicit NewLinks(std::vector<wan::Transport*> transports) : transports_(std::move(transports)) {}
  outer_optimizer::Exchange& among(const View& view) override {
    if (generation_ != view.generation) {
      generation_ = view.generation;
      exchange_.emplace(*transports_.at(static_cast<std::size_t>(view.generation - 1)));
    }
    return *exchange_;
  }
  wan::Transport& connections(const View& view) override {
    FARSTEP_CHECK(has(view), "no links of generation {}", view.generation);
    return *transports_.at(static_cast<std::size_t>(view.generation - 1));
  }
  bool has(const View& view) const { return generation_ == view.generation; }

 private:
  const std::vector<wan::Transport*> transports_;  // by generation, from 1
  int64_t generation_ = 0;
  std::optional<outer_optimizer::DirectExchange> exchange_;
};

TEST_CASE("the links of a new view are there before its first step") {
  const std::vector<std::string> members{"s0", "s1"};
  const auto first = connect_in_memory(members, 10), second = connect_in_memory(members, 10);
  const TemporaryFolder folder;
  const auto results = wan::run_ranks(2, [&](int rank) {
    const auto place = static_cast<std::size_t>(rank);
    FakeClock clock;
    Recorder recorder(folder / members[place], members[place], clock);
    GradientSums sums({}, 8, {0}, recorder, clock);
    NewLinks links({first[place].get(), second[place].get()});
    std::vector<float> gradients;
    bool are_there = true;
    // The second view has the members of the first, as after a takeover of the coordinator.
    for (int64_t generation = 1; generation <= 2; ++generation) {
      gradients.assign(5, static_cast<float>(rank + 1));
      const View view{.generation = generation, .members = members, .self = place};
      sums.meet({.view = view, .round = generation, .coefficients = {0.5, 0.5}}, links, gradients);
      are_there = are_there && links.has(view);
      sums.begin_step();
      sums.ready(0, 0, 5);
      sums.finish(0);
    }
    return std::pair(are_there, gradients);
  });
  for (const auto& [are_there, gradients] : results) {
    CHECK(are_there);
    CHECK(gradients == std::vector<float>(5, 1.5F));
  }
}

}  // namespace
}  // namespace farstep
