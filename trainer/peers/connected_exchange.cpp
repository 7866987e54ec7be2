#include "trainer/peers/connected_exchange.h"

#include <algorithm>
#include <array>

#include "outer_optimizer/exchange/direct_exchange.h"
#include "outer_optimizer/exchange/ring_exchange.h"
#include "trainer/base/error.h"
#include "trainer/config/fields.h"
#include "wan/collective/link_ring.h"
#include "wan/transport/gloo/gloo_ring.h"

namespace farstep {

namespace {

class OverLinks : public ConnectedExchange {
 public:
  explicit OverLinks(const ExchangeGround& ground) : exchange_(ground.links) {}
  outer_optimizer::Exchange& exchange() override { return exchange_; }
  std::optional<wan::SocketBytes> own_bytes() override { return {}; }
  void abort(const std::string& /*site*/, const std::string& /*reason*/) override {}

 private:
  outer_optimizer::DirectExchange exchange_;
};

class RingOverLinks : public ConnectedExchange {
 public:
  explicit RingOverLinks(const ExchangeGround& ground)
      : ring_(ground.links, ground.mesh.generation), exchange_(ring_, ground.mesh.rank) {}
  outer_optimizer::Exchange& exchange() override { return exchange_; }
  std::optional<wan::SocketBytes> own_bytes() override { return {}; }
  void abort(const std::string& /*site*/, const std::string& /*reason*/) override {}

 private:
  wan::LinkRing ring_;
  outer_optimizer::RingExchange exchange_;
};

class OverRing : public ConnectedExchange {
 public:
  explicit OverRing(const ExchangeGround& ground)
      : ring_(ground.mesh, ground.stall_seconds, ground.store),
        exchange_(ring_, ground.mesh.rank) {}
  outer_optimizer::Exchange& exchange() override { return exchange_; }
  std::optional<wan::SocketBytes> own_bytes() override { return ring_.socket_bytes(); }
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

using Make = std::unique_ptr<ConnectedExchange> (*)(const ExchangeGround& ground);

struct ExchangeRow {
  outer_optimizer::ExchangeKind kind;
  Make make;            // without keys
  Make make_with_keys;  // over the links
};

// Parameter servers are the direct exchange with partitions for the servers only.
constexpr std::array kExchanges{
    ExchangeRow{outer_optimizer::ExchangeKind::kDirect, make<OverLinks>, make<OverLinks>},
    ExchangeRow{outer_optimizer::ExchangeKind::kParameterServer, make<OverLinks>, make<OverLinks>},
    ExchangeRow{outer_optimizer::ExchangeKind::kRing, make<OverRing>, make<RingOverLinks>},
};

}  // namespace

bool uses_links(outer_optimizer::ExchangeKind kind, bool has_keys) {
  return has_keys || traits_of(kind).over_links;
}

std::unique_ptr<ConnectedExchange> make_exchange(outer_optimizer::ExchangeKind kind,
                                                 const ExchangeGround& ground) {
  const auto row = std::ranges::find(kExchanges, kind, &ExchangeRow::kind);
  FARSTEP_CHECK(row != kExchanges.end(), "exchange {} has no row", name_of(kind));
  return (ground.mesh.relay == nullptr ? row->make : row->make_with_keys)(ground);
}

}  // namespace farstep
