#include "trainer/scatter/batch_scatter.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/memory_transport.h"
#include "tests/wan/transport/run_ranks.h"
#include "trainer/base/error.h"
#include "trainer/data/loader.h"
#include "trainer/data/tokens/token_batch.h"
#include "trainer/scatter/scattered_batches.h"

namespace farstep {

namespace {

using Catch::Contains;

constexpr int64_t kLength = 3, kVocabulary = 1000;

// Sequences that begin with their number, and count on.
class CountedSequences : public Examples {
 public:
  int64_t size() const override { return 200; }
  Batch read(std::span<const int64_t> numbers) const override {
    auto batch = std::make_shared<TokenBatch>(
        TokenBatch{.sequences = std::ssize(numbers), .length = kLength, .tokens = {}});
    for (const int64_t number : numbers) {
      for (int64_t i = 0; i <= kLength; ++i) batch->tokens.push_back(number + i);
    }
    return {.view = *batch, .memory = batch};
  }
};

// One site's connections, without an exchange.
class OnlyConnections : public outer_optimizer::Exchanges {
 public:
  explicit OnlyConnections(wan::Transport& transport) : transport_(transport) {}
  outer_optimizer::Exchange& among(const View& view) override {
    ++views[view.generation];
    return none_;
  }
  wan::Transport& connections(const View&) override { return transport_; }

  std::map<int64_t, int> views;  // that were asked for, by generation

 private:
  class None : public outer_optimizer::Exchange {
    void average(const outer_optimizer::SyncPoint&, std::span<float>,
                 const outer_optimizer::ResidualSpans&) override {}
    void average_parts(const outer_optimizer::SyncPoint&,
                       std::span<const std::vector<outer_optimizer::Range>>,
                       outer_optimizer::FinalParts&, std::span<float>) override {}
  };
  wan::Transport& transport_;
  None none_;
};

// The steps of a round at sites with batches of 2, 3, 4, ...
StepDraws round_of(int num_sites, int self, int64_t steps, int64_t steps_done = 0) {
  StepDraws draws{.steps_done = steps_done, .steps = steps};
  draws.view = {.generation = 1, .members = {}, .self = static_cast<std::size_t>(self)};
  RoundRange range{.pool = WindowPool(150), .num_members = num_sites};
  for (int site = 0; site < num_sites; ++site) {
    draws.view.members.push_back("s" + std::to_string(site));
    const int64_t batch = site + 2;
    draws.sites.push_back({.range = range, .first = steps_done * batch, .batch = batch});
    range.offset += 10 * batch;
  }
  return draws;
}

const CountedSequences& examples() {
  static const CountedSequences sequences;
  return sequences;
}

Sampler sampler() {
  return {DataOrder::kShuffled, 5, examples().size()};
}

// The sites of a run whose master is the one at this place.
class Sites {
 public:
  explicit Sites(int num_sites, int master = 0, double stall_seconds = 10) {
    std::vector<std::string> names;
    for (int site = 0; site < num_sites; ++site) names.push_back("s" + std::to_string(site));
    transports_ = connect_in_memory(names, stall_seconds);
    for (int site = 0; site < num_sites; ++site) {
      auto& own = exchanges.emplace_back(
          std::make_unique<OnlyConnections>(*transports_[static_cast<std::size_t>(site)]));
      if (site == master) {
        sources.push_back(std::make_unique<BatchScatter>(examples(), sampler(), *own));
      } else {
        sources.push_back(std::make_unique<ScatteredBatches>(
            token_form(kLength, kVocabulary), names[static_cast<std::size_t>(master)], *own));
      }
    }
  }
  BatchSource& operator[](int site) { return *sources[static_cast<std::size_t>(site)]; }
  wan::Transport& transport(int site) { return *transports_[static_cast<std::size_t>(site)]; }

 private:
  std::vector<std::unique_ptr<wan::Transport>> transports_;

 public:
  std::vector<std::unique_ptr<OnlyConnections>> exchanges;
  std::vector<std::unique_ptr<BatchSource>> sources;
};

std::vector<int64_t> tokens_of(const Batch& batch) {
  const auto bytes = batch.view.parts.at(0).bytes;
  std::vector<int64_t> tokens(bytes.size() / sizeof(int64_t));
  std::memcpy(tokens.data(), bytes.data(), bytes.size());
  return tokens;
}

}  // namespace

TEST_CASE("every site gets the batches that it would read, whoever the master is") {
  for (const auto& run : {std::pair{1, 0}, {2, 0}, {2, 1}, {4, 2}}) {
    const int num_sites = run.first, master = run.second;
    INFO(num_sites << " sites, master " << master);
    Sites sites(num_sites, master);
    constexpr int64_t kSteps = 4;
    const auto got = wan::run_ranks(num_sites, [&](int site) {
      std::vector<Batch> batches;
      // Two parts of a round, as when it is planned anew.
      for (const int64_t done : {int64_t{0}, kSteps}) {
        sites[site].begin(round_of(num_sites, site, kSteps, done));
        for (int64_t step = 0; step < kSteps; ++step) batches.push_back(sites[site].next());
      }
      return batches;
    });
    for (int site = 0; site < num_sites; ++site) {
      Loader loader(examples(), sampler());
      loader.begin(round_of(num_sites, site, 2 * kSteps));
      const auto& batches = got[static_cast<std::size_t>(site)];
      REQUIRE(batches.size() == 2 * kSteps);
      for (const auto& batch : batches) {
        const auto wanted = loader.next();
        CHECK(tokens_of(batch) == tokens_of(wanted));
        CHECK(batch.view.examples == site + 2);
        CHECK(batch.view.targets == wanted.view.targets);
        CHECK(batch.view.text == wanted.view.text);
        CHECK(batch.view.parts[0].shape == wanted.view.parts[0].shape);
      }
      CHECK(sites[site].comes_from_peer() == (site != master));
      CHECK(sites.exchanges[static_cast<std::size_t>(site)]->views.at(1) == 2);
    }
  }
}

TEST_CASE("the master does not wait for sites that are not there yet") {
  Sites sites(3);
  sites[0].begin(round_of(3, 0, 2));
  const auto first = sites[0].next();  // nobody receives
  CHECK(first.view.examples == 2);
  for (const int site : {1, 2}) sites[site].begin(round_of(3, site, 2));
  for (int step = 0; step < 2; ++step) {
    for (const int site : {1, 2}) CHECK(sites[site].next().view.examples == site + 2);
  }
  CHECK(sites[0].next().view.examples == 2);
}

TEST_CASE("no batch is sent or awaited beyond the steps of the plan") {
  Sites sites(2);
  for (const int64_t steps : {0, 1}) {
    for (const int site : {0, 1}) sites[site].begin(round_of(2, site, steps));
    for (int64_t step = 0; step < steps; ++step) {
      for (const int site : {0, 1}) sites[site].next();
    }
    for (const int site : {0, 1}) CHECK_THROWS_AS(sites[site].next(), InternalError);
  }
  sites.sources.clear();  // the master's worker has sent all
  CHECK(sites.transport(0).uplink().sent_bytes == 3 * 4 * sizeof(int64_t));
  CHECK(sites.transport(1).uplink().sent_bytes == 0);
  CHECK(sites.transport(1).link(0).received_bytes == 3 * 4 * sizeof(int64_t));
}

TEST_CASE("a batch of another step, round or generation is not taken, and its sender is named") {
  for (int kind = 0; kind < 3; ++kind) {
    Sites sites(2, 0, 0.2);
    auto other = round_of(2, 1, 1);
    if (kind == 0) other.steps_done = 1;
    if (kind == 1) other.round = 2;
    if (kind == 2) other.view.generation = 2;
    sites[0].begin(round_of(2, 0, 1));
    sites[1].begin(other);
    try {
      sites[1].next();
      FAIL("it was taken");
    } catch (const PeerError& error) {
      CHECK(error.site() == "s0");
      CHECK_THAT(error.what(), Contains(fmt::format("the batch of step {} of round {}, which s0",
                                                    other.steps_done + 1, other.round)));
    }
    sites.transport(0).abort("s1", "it has ended");
  }
}

TEST_CASE("a batch with a value that would index beyond the model is refused") {
  const auto transports = connect_in_memory({"s0", "s1"}, 10);
  const auto form = token_form(1, 50);
  for (const int64_t value : {-1, 50}) {
    const TokenBatch batch{.sequences = 1, .length = 1, .tokens = {49, value}};
    const BatchStep step{.generation = 1, .round = 1, .step = value + 2};
    IncomingBatch incoming(*transports[1], 0, step, form, 1);
    const auto sent = send_batch(*transports[0], 1, step, batch);
    for (const auto& transfer : sent) transfer->wait();
    CHECK_THROWS_WITH(incoming.wait(), Contains(fmt::format("a value of {}", value)));
  }
}

TEST_CASE("the loss of a site ends the wait for a batch, and the master's for its sending") {
  Sites sites(3);
  for (const int site : {0, 1}) sites[site].begin(round_of(3, site, 3));
  sites[0].next();
  sites[1].next();
  // Site 2 has never asked for its first batch, so the master's worker still sends that.
  sites.transport(2).abort("s2", "it is gone");
  for (const int site : {0, 1}) {
    INFO("site " << site);
    CHECK_THROWS_AS(sites[site].next(), PeerError);
  }
}

}  // namespace farstep
