#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "tests/outer_optimizer/exchange/exchange_ranks.h"
#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::outer_optimizer;
using namespace std::chrono_literals;

namespace {

class AllFinal : public FinalParts {
 public:
  bool is_final(std::size_t /*part*/) const override { return true; }
  void wait_until_final(std::size_t /*part*/) override {}
};

}  // namespace

TEST_CASE(
    "values in parts have the bits of the whole, whichever site makes its parts final first") {
  // Parts that are made final one by one, on another thread.
  class Growing : public FinalParts {
   public:
    bool is_final(std::size_t part) const override { return part < num_final_; }
    void wait_until_final(std::size_t part) override {
      for (auto now = num_final_.load(); part >= now; now = num_final_) num_final_.wait(now);
    }
    void add() {
      ++num_final_;
      num_final_.notify_all();
    }

   private:
    std::atomic<std::size_t> num_final_ = 0;
  };
  for (const int num_sites : {1, 2, 3}) {
    for (const std::size_t size : {1, 7, 200'003}) {
      const auto deltas = random_deltas(num_sites, size);
      SyncPoint point{.generation = 1, .round = 1};
      for (int site = 0; site < num_sites; ++site) point.coefficients.push_back(site + 0.5);
      const auto wanted = average(connect(num_sites), deltas, point);
      for (const auto& shares : std::vector<std::vector<double>>{{1, 1, 1}, {0, 1, 1}, {1, 0, 0}}) {
        std::vector<double> used(shares.begin(), shares.begin() + num_sites);
        if (num_sites == 1) used = {1};
        // From the end, as backward makes them; the last part is smaller.
        std::vector<std::vector<Range>> parts;
        for (auto end = static_cast<int64_t>(size); end > 0; end -= 30'000) {
          parts.push_back(cut_by_shares({std::max<int64_t>(0, end - 30'000), end}, used));
        }
        const auto transports = connect(num_sites);
        const Fp32Codec codec;
        const auto sums = wan::run_ranks(num_sites, [&](int rank) {
          Growing source;
          const std::jthread maker([&] {
            for (std::size_t part = 0; part < parts.size(); ++part) source.add();
          });
          DirectExchange exchange(*transports[static_cast<std::size_t>(rank)], 1 << 20);
          auto values = deltas[static_cast<std::size_t>(rank)];
          auto here = point;
          here.codec = &codec;
          exchange.average_parts(here, parts, source, values);
          return values;
        });
        for (int site = 0; site < num_sites; ++site) REQUIRE(sums[site] == wanted[0]);
      }
    }
  }
}

TEST_CASE("parts of one server each have the bits of the whole") {
  const auto deltas = random_deltas(3, 100'000);
  const SyncPoint point{.generation = 1, .round = 1, .coefficients = {0.5, 0.25, 0.25}};
  const auto wanted = average(connect(3), deltas, point);
  const auto transports = connect(3);
  // Of site 2, of both, of site 0, of nobody; site 1 only sends.
  const std::vector<std::vector<Range>> parts{
      {{60'000, 60'000}, {60'000, 60'000}, {60'000, 100'000}},
      {{50'000, 55'000}, {55'000, 55'000}, {55'000, 60'000}},
      {{0, 50'000}, {50'000, 50'000}, {50'000, 50'000}},
      {{0, 0}, {0, 0}, {0, 0}}};
  const auto means = wan::run_ranks(3, [&](int rank) {
    AllFinal source;
    const Fp32Codec codec;
    auto here = point;
    here.codec = &codec;
    DirectExchange exchange(*transports[static_cast<std::size_t>(rank)], 1 << 20);
    auto values = deltas[static_cast<std::size_t>(rank)];
    exchange.average_parts(here, parts, source, values);
    return values;
  });
  for (int site = 0; site < 3; ++site) REQUIRE(means[site] == wanted[0]);
}

TEST_CASE("a server of a later part adds while that of an earlier part is not done") {
  // Site 0 adds only after site 1 has, whose part is the second.
  class WaitingCodec : public Fp32Codec {
   public:
    WaitingCodec(std::promise<void>& added, std::shared_future<void> awaited)
        : added_(added), awaited_(std::move(awaited)) {}
    void add_decoded(std::span<const std::byte> bytes, float coefficient,
                     std::span<float> sum) const override {
      if (awaited_.valid() && awaited_.wait_for(20s) != std::future_status::ready) {
        throw PeerError("node1", "has not added");
      }
      Fp32Codec::add_decoded(bytes, coefficient, sum);
      std::call_once(once_, [&] { added_.set_value(); });
    }

   private:
    std::promise<void>& added_;
    std::shared_future<void> awaited_;
    mutable std::once_flag once_;
  };
  const std::vector<std::vector<Range>> parts{{{4, 8}, {8, 8}}, {{0, 0}, {0, 4}}};
  const auto transports = connect(2);
  std::vector<std::promise<void>> added(2);
  const std::vector<std::shared_future<void>> awaited{added[1].get_future().share(), {}};
  const auto means = wan::run_ranks(2, [&](int rank) {
    const auto site = static_cast<std::size_t>(rank);
    const WaitingCodec codec(added[site], awaited[site]);
    AllFinal source;
    Values values(8, static_cast<float>(1 + rank));
    DirectExchange exchange(*transports[site]);
    exchange.average_parts({.coefficients = {0.5, 0.5}, .codec = &codec}, parts, source, values);
    return values;
  });
  CHECK(means == std::vector<Values>(2, Values(8, 1.5F)));
}

TEST_CASE("a pipeline that fails ends those beside it at once") {
  // The first part waits for site 1, which never comes; the second one fails before it begins.
  class FirstOnly : public FinalParts {
   public:
    bool is_final(std::size_t part) const override { return part == 0; }
    void wait_until_final(std::size_t) override { throw PeerError("node0", "abandoned"); }
  };
  constexpr double kLongerThanTheTest = 3600;
  const auto transports = connect_in_memory({"node0", "node1"}, kLongerThanTheTest);
  const std::vector<std::vector<Range>> parts{{{4, 4}, {4, 8}}, {{0, 4}, {4, 4}}};
  const Fp32Codec codec;
  FirstOnly source;
  Values values(8, 1.0F);
  DirectExchange exchange(*transports[0]);
  CHECK_THROWS_WITH(
      exchange.average_parts({.coefficients = {0.5, 0.5}, .codec = &codec}, parts, source, values),
      "abandoned");
}

TEST_CASE("values that will never be final end the exchange at all sites") {
  class Abandoned : public FinalParts {
   public:
    bool is_final(std::size_t part) const override { return part == 0; }
    void wait_until_final(std::size_t) override { throw PeerError("node0", "abandoned"); }
  };
  auto transports = connect(2);
  const std::vector<std::vector<Range>> parts{equal_ranges(8, 2), {{8, 8}, {8, 16}}};
  const Fp32Codec codec;
  const auto errors = wan::run_ranks(2, [&](int rank) -> std::string {
    AllFinal all;
    Abandoned abandoned;
    Values values(16, 1.0F);
    DirectExchange exchange(*transports[static_cast<std::size_t>(rank)]);
    try {
      exchange.average_parts({.coefficients = {0.5, 0.5}, .codec = &codec}, parts,
                             rank == 0 ? static_cast<FinalParts&>(abandoned) : all, values);
    } catch (const PeerError& error) {
      if (rank == 0) transports[0].reset();
      return error.site();
    }
    return "";
  });
  CHECK(errors == std::vector<std::string>{"node0", "node0"});
}
