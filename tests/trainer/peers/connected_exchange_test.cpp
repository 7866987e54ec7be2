#include "trainer/peers/connected_exchange.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"
#include "trainer/peers/site_peers.h"

using namespace farstep;
using outer_optimizer::ExchangeKind;

TEST_CASE(
    "without keys a ring has connections of its own, with keys each exchange uses the links") {
  for (const auto kind : {ExchangeKind::kDirect, ExchangeKind::kParameterServer}) {
    CHECK(uses_links(kind, false));
    CHECK(uses_links(kind, true));
  }
  CHECK_FALSE(uses_links(ExchangeKind::kRing, false));
  CHECK(uses_links(ExchangeKind::kRing, true));
}

// It was refused, though `farstep init` makes keys by default.
TEST_CASE("a ring with keys is let in, and its links may be emulated") {
  RunConfig run;
  run.sync.exchange = ExchangeKind::kRing;
  SiteConfig site;
  CHECK_NOTHROW(require_links_fit(run, site));
  site.network.emulate.emplace();
  CHECK_THROWS_AS(require_links_fit(run, site), ConfigError);
  site.network.keys = "keys/sites/a";
  CHECK_NOTHROW(require_links_fit(run, site));
  site.network.emulate.reset();
  CHECK_NOTHROW(require_links_fit(run, site));
}
