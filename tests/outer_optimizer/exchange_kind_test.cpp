#include "outer_optimizer/exchange_kind.h"

#include "outer_optimizer/sync_config.h"
#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::outer_optimizer;

TEST_CASE("every kind of exchange has its row, and a sync asks only what the row has") {
  for (std::size_t i = 0; i < enum_names(ExchangeKind{}).size(); ++i) {
    const auto kind = static_cast<ExchangeKind>(i);
    const auto& traits = traits_of(kind);
    REQUIRE(traits.kind == kind);
    const auto is_refused = [&](auto change) {
      SyncConfig sync;
      sync.exchange = kind;
      change(sync);
      try {
        sync.validate({"run.json", "sync"}, 100);
        return false;
      } catch (const ConfigError&) {
        return true;
      }
    };
    CHECK_FALSE(is_refused([](SyncConfig&) {}));
    CHECK(is_refused([](SyncConfig& sync) { sync.codec.kind = CodecKind::kInt8; }) !=
          traits.takes_codecs);
    CHECK(is_refused([](SyncConfig& sync) { sync.shares = SharesRule::kBandwidth; }) !=
          traits.takes_shares);
    CHECK(is_refused([](SyncConfig& sync) { sync.servers = {"a"}; }) ==
          (traits.servers == ServersUse::kNone));
  }
}
