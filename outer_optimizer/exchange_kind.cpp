#include "outer_optimizer/exchange_kind.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/config/fields.h"

namespace farstep {

namespace {

// A new kind adds a row.
constexpr std::array kExchanges{
    ExchangeTraits{.kind = ExchangeKind::kDirect,
                   .servers = ServersUse::kIgnored,
                   .takes_codecs = true,
                   .takes_shares = true,
                   .can_be_retuned = true,
                   .over_links = true},
    ExchangeTraits{.kind = ExchangeKind::kParameterServer,
                   .servers = ServersUse::kAddUp,
                   .takes_codecs = true,
                   .takes_shares = false,
                   .can_be_retuned = false,
                   .over_links = true},
    ExchangeTraits{.kind = ExchangeKind::kRing,
                   .servers = ServersUse::kNone,
                   .takes_codecs = false,
                   .takes_shares = false,
                   .can_be_retuned = false,
                   .over_links = false},
};

}  // namespace

const ExchangeTraits& traits_of(ExchangeKind kind) {
  const auto row = std::ranges::find(kExchanges, kind, &ExchangeTraits::kind);
  FARSTEP_CHECK(row != kExchanges.end(), "exchange {} has no row", name_of(kind));
  return *row;
}

}  // namespace farstep
