// Peers may send anything here, so a notice is limited and checked before a port of it becomes an
// index.
#include "wan/transport/network_notice.h"

#include "trainer/config/strict_json.h"

namespace farstep::wan {

namespace {

constexpr int64_t kHighestPort = 65535;

struct Fields {
  std::string address, nonce, failure;
  std::vector<int64_t> ports;
  bool is_temporary = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("address", address, "where the site listens");
    visit("ports", ports, "a port for each site");
    visit("nonce", nonce, "what the site answers to a visitor");
    visit("failure", failure, "why the site cannot take part");
    visit("is_temporary", is_temporary, "another try of it may succeed");
  }
};

}  // namespace

std::string text_of(const NetworkNotice& notice) {
  return to_json(Fields{notice.address,
                        notice.nonce,
                        notice.failure,
                        {notice.ports.begin(), notice.ports.end()},
                        notice.is_temporary})
      .dump();
}

// A site counts on a port for each peer, and on addresses that are numbers within their range.
NetworkNotice read_network_notice(const std::string& text, int num_sites) {
  const auto fields = read_untrusted<Fields>(text, "the notice");
  NetworkNotice notice{fields.address, fields.nonce, {}, fields.failure, fields.is_temporary};
  // A site that failed may have no ports; its reason is all that counts.
  if (!notice.failure.empty()) return notice;
  if (std::ssize(fields.ports) != num_sites) {
    throw DataError(fmt::format("it has {} ports for {} sites", fields.ports.size(), num_sites));
  }
  for (const int64_t port : fields.ports) {
    if (port < 0 || port > kHighestPort) throw DataError(fmt::format("{} is no port", port));
    notice.ports.push_back(static_cast<int>(port));
  }
  return notice;
}

}  // namespace farstep::wan
