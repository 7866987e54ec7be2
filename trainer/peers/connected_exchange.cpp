#include "trainer/peers/connected_exchange.h"

#include <algorithm>
#include <array>

#include "outer_optimizer/exchange/direct_exchange.h"
#include "outer_optimizer/exchange/ring_exchange.h"
#include "trainer/base/error.h"
#include "trainer/config/fields.h"
#include "wan/transport/gloo/gloo_ring.h"

namespace farstep {

namespace {

class OverLinks : public ConnectedExchange {
 public:
  explicit OverLinks(const ExchangeGround& ground) : exchange_(ground.links) {}
  outer_optimizer::Exchange& exchange() override { return exchange_; }
  wan::SocketBytes own_bytes() override { return {}; }
  void abort(const std::string& /*site*/, const std::string& /*reason*/) override {}

 private:
  outer_optimizer::DirectExchange exchange_;
};

class OverRing : public ConnectedExchange {
 public:
  explicit OverRing(const ExchangeGround& ground)
      : ring_(ground.mesh, ground.stall_seconds, ground.store),
        exchange_(ring_, ground.mesh.rank) {}
  outer_optimizer::Exchange& exchange() override { return exchange_; }
  wan::SocketBytes own_bytes() override { return ring_.socket_bytes(); }
  void abort(const std::string& site, const std::string& reason) override {
    ring_.abort(site, reason);
  }

 private:
  wan::GlooRing ring_;
  outer_optimizer::RingExchange exchange_;
};

template <typename Kind>
std::unique_ptr<ConnectedExchange> make(const ExchangeGround& ground) {
  return std::make_unique<Kind>(ground);
}

struct ExchangeRow {
  outer_optimizer::ExchangeKind kind;
  std::unique_ptr<ConnectedExchange> (*make)(const ExchangeGround& ground);
};

// Parameter servers are the direct exchange with partitions for the servers only.
constexpr std::array kExchanges{
    ExchangeRow{outer_optimizer::ExchangeKind::kDirect, make<OverLinks>},
    ExchangeRow{outer_optimizer::ExchangeKind::kParameterServer, make<OverLinks>},
    ExchangeRow{outer_optimizer::ExchangeKind::kRing, make<OverRing>},
};

}  // namespace

std::unique_ptr<ConnectedExchange> make_exchange(outer_optimizer::ExchangeKind kind,
                                                 const ExchangeGround& ground) {
  const auto row = std::ranges::find(kExchanges, kind, &ExchangeRow::kind);
  FARSTEP_CHECK(row != kExchanges.end(), "exchange {} has no row", name_of(kind));
  return row->make(ground);
}

}  // namespace farstep
