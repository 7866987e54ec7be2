// Links of view after view, with real sockets, keys and a coordinator. The sites are threads.
#include "trainer/peers/renewed_links.h"

#include <array>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/wan/membership/parties.h"
#include "trainer/base/error.h"
#include "trainer/peers/secure_port.h"
#include "wan/secure/key_folder.h"

namespace farstep {
namespace {

using Texts = std::vector<std::string>;

// Sites s0, s1 and s2 of a run. Nobody can connect to the last two: each has a link to the first
// one only.
class ThreeSites {
 public:
  // `stages`: where each site stands when it makes its first links.
  explicit ThreeSites(
      const std::array<wan::LinkStage, 3>& stages,
      outer_optimizer::ExchangeKind exchange = outer_optimizer::ExchangeKind::kDirect)
      : party_(3, wan::patient_deadlines(), 1) {
    wan::make_key_folder(folder_ / "keys", "mine");
    wan::add_site_keys(folder_ / "keys", {"s0", "s1", "s2"}, 30);
    for (int site = 0; site < 3; ++site) {
      ports_.push_back(std::make_unique<SecurePort>(
          wan::site_key_folder(folder_ / "keys", wan::name_of_site(site)),
          std::vector{wan::SocketAddress("127.0.0.1", 0)},
          site == 0 ? std::optional<std::string>("127.0.0.1") : std::nullopt, party_.clock));
      links_.push_back(std::make_unique<RenewedLinks>([this, site, exchange,
                                                       stage = stages[site]](const View& view) {
        const LinkOptions options{
            .stage = stage, .network = {}, .secure_port = ports_[site].get(), .connect_seconds = 2};
        auto links = std::make_unique<Links>(view, options, *party_.members[site], party_.clock);
        links->make_exchange(exchange);
        return links;
      }));
    }
  }

  // What becomes of the first `n` sites, in their order, in a view with them.
  Texts outcomes(int64_t generation, int n) {
    return wan::run_ranks(n, [&](int site) -> std::string {
      const auto view = view_of(generation, n, site);
      try {
        links_[site]->among(view);
        return heard_from_others(view, links_[site]->connections(view));
      } catch (const PeerError& error) {
        return "lost " + error.site();
      } catch (const ConfigError& error) {
        return error.what();
      }
    });
  }

  // The sum that each of the first `n` sites gets, of as many values as its number; and how many
  // links have the bytes.
  std::vector<std::pair<float, int64_t>> sums(int64_t generation, int n) {
    return wan::run_ranks(n, [&](int site) {
      const auto view = view_of(generation, n, site);
      auto& exchange = links_[site]->among(view);
      std::vector<float> values(1000, static_cast<float>(site + 1));
      exchange.average({.coefficients = std::vector<double>(static_cast<std::size_t>(n), 1.0)},
                       values);
      const auto uses = links_[site]->links(view);
      return std::pair(values.back(), std::ranges::count_if(uses, [](const auto& use) {
                         return use.state.sent_bytes > 0;
                       }));
    });
  }

 private:
  static View view_of(int64_t generation, int n, int site) {
    View view{.generation = generation, .members = {}, .self = static_cast<std::size_t>(site)};
    for (int i = 0; i < n; ++i) view.members.push_back(wan::name_of_site(i));
    return view;
  }

  static std::string heard_from_others(const View& view, wan::Transport& transport) {
    const std::array own{static_cast<std::byte>(view.self + 1)};
    std::vector<std::byte> heard(view.size());
    std::vector<std::unique_ptr<wan::Transfer>> transfers;
    for (std::size_t place = 0; place < view.size(); ++place) {
      if (place == view.self) continue;
      const auto peer = static_cast<int>(place);
      transfers.push_back(transport.receive(peer, {}, std::span(heard).subspan(place, 1)));
      transfers.push_back(transport.send(peer, {}, own));
    }
    for (const auto& transfer : transfers) transfer->wait();
    std::string names;
    for (std::size_t place = 0; place < view.size(); ++place) {
      if (heard[place] == static_cast<std::byte>(place + 1)) names += view.members[place];
    }
    return names;
  }

  const TemporaryFolder folder_;
  wan::Party party_;
  std::vector<std::unique_ptr<SecurePort>> ports_;
  std::vector<std::unique_ptr<RenewedLinks>> links_;
};

constexpr const char* kNoLink = "network.address: s1 and s2 have none, so neither can connect";

TEST_CASE("at the start of a run one pair without a link ends all sites") {
  ThreeSites sites({wan::LinkStage::kStart, wan::LinkStage::kStart, wan::LinkStage::kStart});
  const auto outcomes = sites.outcomes(1, 3);
  CHECK_THAT(outcomes[0], Catch::StartsWith(kNoLink));
  CHECK(outcomes[1] == outcomes[0]);
  CHECK(outcomes[2] == outcomes[0]);
}

// It was the end of the run: each new generation repeated the check of the start.
TEST_CASE("a newcomer that one member cannot reach ends alone, and the members go on") {
  ThreeSites sites({wan::LinkStage::kRun, wan::LinkStage::kRun, wan::LinkStage::kJoin});
  CHECK(sites.outcomes(1, 2) == Texts{"s1", "s0"});
  const auto outcomes = sites.outcomes(2, 3);
  CHECK(outcomes[0] == "lost ");
  CHECK(outcomes[1] == "lost s2");
  CHECK_THAT(outcomes[2], Catch::StartsWith(kNoLink));
  CHECK(sites.outcomes(3, 2) == Texts{"s1", "s0"});
}

TEST_CASE("two members that lose each other are lost peers to each other, and to nobody else") {
  ThreeSites sites({wan::LinkStage::kRun, wan::LinkStage::kRun, wan::LinkStage::kRun});
  CHECK(sites.outcomes(1, 3) == Texts{"lost ", "lost s2", "lost s1"});
}

TEST_CASE("with keys a ring adds up over the links, whose bytes are counted a peer") {
  ThreeSites sites({wan::LinkStage::kStart, wan::LinkStage::kStart, wan::LinkStage::kStart},
                   outer_optimizer::ExchangeKind::kRing);
  CHECK(sites.sums(1, 2) == std::vector<std::pair<float, int64_t>>(2, {3.0F, 1}));
}

}  // namespace
}  // namespace farstep
