// Who offers a service keeps a handle, and the service ends with it: no call is needed to take it
// back, also when an exception ends the offer.
#include "wan/tunnel/services.h"

#include "wan/transport/relay.h"

namespace farstep::wan {

namespace {

// Above the ranks of sites, whose addresses the data path uses.
constexpr int kFirstVisitor = 32'768;

}  // namespace

std::shared_ptr<const void> Services::offer(const std::string& peer, const std::string& name,
                                            Service service) {
  auto offer = std::make_shared<const Service>(std::move(service));
  const std::lock_guard lock(mutex_);
  // Offers that have ended leave an empty entry; a new one is rare enough to sweep them.
  std::erase_if(offers_, [](const auto& entry) { return entry.second.expired(); });
  offers_[{peer, name}] = offer;
  return offer;
}

std::shared_ptr<const void> Services::offer_to_all(const std::string& name,
                                                   const SocketAddress& address) {
  return offer("", name, {address, ""});
}

std::optional<Service> Services::find(const std::string& peer, const std::string& name) {
  const std::lock_guard lock(mutex_);
  // What is offered to this peer comes before what is offered to all.
  const auto own = offers_.find({peer, name});
  if (own != offers_.end()) {
    if (const auto service = own->second.lock()) return *service;
  }
  const auto common = offers_.find({"", name});
  const auto service = common == offers_.end() ? nullptr : common->second.lock();
  if (!service) return std::nullopt;
  auto visit = *service;
  // A peer keeps its address for all its visits, so that the coordinator knows it again.
  for (const auto& [ip, visitor] : visitors_) {
    if (visitor == peer) visit.source_ip = ip;
  }
  if (visit.source_ip.empty()) {
    visit.source_ip = loopback_ip(kFirstVisitor + static_cast<int>(visitors_.size()));
    visitors_[visit.source_ip] = peer;
  }
  return visit;
}

std::optional<std::string> Services::visitor(const std::string& ip) const {
  const std::lock_guard lock(mutex_);
  const auto found = visitors_.find(ip);
  return found == visitors_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace farstep::wan
