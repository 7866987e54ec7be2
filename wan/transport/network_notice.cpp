// Peers may send anything here, so a notice is limited and checked before a port of it becomes an
// index.
#include "wan/transport/network_notice.h"

#include <fmt/ranges.h>

#include <charconv>

#include "trainer/base/error.h"
#include "trainer/config/strict_json.h"

namespace farstep::wan {

namespace {

constexpr int64_t kHighestPort = 65535;

struct Fields {
  std::string address, nonce, failure, kept;
  std::vector<int64_t> ports;
  bool is_temporary = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("address", address, "where the site listens");
    visit("ports", ports, "a port for each site");
    visit("nonce", nonce, "what the site answers to a visitor");
    visit("failure", failure, "why the site cannot take part");
    visit("is_temporary", is_temporary, "another try of it may succeed");
    visit("kept", kept, "the connections that the site would keep");
  }
};

}  // namespace

std::string text_of(const NetworkNotice& notice) {
  return to_json(Fields{notice.address,
                        notice.nonce,
                        notice.failure,
                        text_of(notice.kept),
                        {notice.ports.begin(), notice.ports.end()},
                        notice.is_temporary})
      .dump();
}

// A site counts on a port for each peer, and on addresses that are numbers within their range.
NetworkNotice read_network_notice(const std::string& text, int num_sites) {
  const auto fields = read_untrusted<Fields>(text, "the notice");
  NetworkNotice notice{fields.address, fields.nonce,        {},
                       fields.failure, fields.is_temporary, read_offers(fields.kept, num_sites)};
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

// Both sites must say the same, as a message that one of them has sent may still be under way: then
// the other one waits for it, and offers nothing.
bool is_kept(const std::vector<Offers>& offers, int a, int b) {
  const auto offer = [&](int site, int peer) {
    const auto& own = offers.at(static_cast<std::size_t>(site));
    return own.empty() ? 0 : own.at(static_cast<std::size_t>(peer));
  };
  return offer(a, b) != 0 && offer(a, b) == offer(b, a);
}

bool are_all_kept(const std::vector<Offers>& offers) {
  const auto size = static_cast<int>(offers.size());
  for (int a = 0; a < size; ++a) {
    for (int b = 0; b < a; ++b) {
      if (!is_kept(offers, a, b)) return false;
    }
  }
  return true;
}

std::string text_of(const Offers& offers) {
  return fmt::format("{}", fmt::join(offers, ","));
}

Offers read_offers(const std::string& text, int num_sites) {
  Offers offers;
  const char* const end = text.data() + text.size();
  for (const char* next = text.data(); next != end;) {
    int64_t offer = -1;
    const auto [rest, error] = std::from_chars(next, end, offer);
    const bool is_last = rest == end;
    if (error != std::errc() || offer < 0 || (!is_last && *rest != ',') ||
        (!is_last && rest + 1 == end)) {
      throw DataError("the connections that it would keep are no list of generations");
    }
    offers.push_back(offer);
    next = is_last ? end : rest + 1;
  }
  if (!offers.empty() && std::ssize(offers) != num_sites) {
    throw DataError(fmt::format("it would keep connections with {} sites, and there are {}",
                                offers.size(), num_sites));
  }
  return offers;
}

}  // namespace farstep::wan
