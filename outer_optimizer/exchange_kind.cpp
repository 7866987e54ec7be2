#include "outer_optimizer/exchange_kind.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/config/fields.h"

namespace farstep::outer_optimizer {

namespace {

// A new kind adds a row. Parameter servers and the ring are baselines of published systems, so the
// planner does not tune them and the simulator does not have them. The ring adds where it passes
// values on, which an encoding would round at every hop.
constexpr std::array kExchanges{
    ExchangeTraits{.kind = ExchangeKind::kDirect,
                   .servers = ServersUse::kIgnored,
                   .takes_codecs = true,
                   .takes_shares = true,
                   .can_be_retuned = true,
                   .over_links = true,
                   .keeps_received = true},
    ExchangeTraits{.kind = ExchangeKind::kParameterServer,
                   .servers = ServersUse::kAddUp,
                   .takes_codecs = true,
                   .takes_shares = false,
                   .can_be_retuned = false,
                   .over_links = true,
                   .keeps_received = true},
    ExchangeTraits{.kind = ExchangeKind::kRing,
                   .servers = ServersUse::kNone,
                   .takes_codecs = false,
                   .takes_shares = false,
                   .can_be_retuned = false,
                   .over_links = false,
                   .keeps_received = false},
};

}  // namespace

const ExchangeTraits& traits_of(ExchangeKind kind) {
  const auto row = std::ranges::find(kExchanges, kind, &ExchangeTraits::kind);
  FARSTEP_CHECK(row != kExchanges.end(), "exchange {} has no row", name_of(kind));
  return *row;
}

}  // namespace farstep::outer_optimizer
