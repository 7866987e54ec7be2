// Every site hears the faults of all, so that all judge alike. A site that ends because of them
// must not end first if it has the store: the others could not read the reasons any more.
#include "wan/transport/link_faults.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/config/strict_json.h"

namespace farstep::wan {

namespace {

struct FaultFields {
  int64_t peer = 0;
  std::string text;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("peer", peer, "the rank of the site that was not reached", kRequired);
    visit("text", text, "the reason and the remedy", kRequired);
  }
};

struct FaultsFields {
  std::vector<FaultFields> faults;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("faults", faults, "the links that a site could not make", kRequired);
  }
};

bool concerns(const LinkFault& fault, int rank) {
  return fault.site == rank || fault.peer == rank;
}

// Returns the names of the other sites that these faults of a site concern.
std::string peers_without_link(const std::vector<LinkFault>& faults, const MeshOptions& mesh) {
  std::set<std::string> names;
  for (const auto& fault : faults) {
    for (const int rank : {fault.site, fault.peer}) {
      if (rank != mesh.rank) names.insert(mesh.sites[rank]);
    }
  }
  return names.empty() ? "anybody" : fmt::format("{}", fmt::join(names, ", "));
}

std::string text_of_all(const std::vector<LinkFault>& faults) {
  std::string text;
  for (const auto& fault : faults) text += (text.empty() ? "" : "\n") + fault.text;
  return text;
}

// Returns the pairs of ranks without a link. A site that cannot take part has none with anybody.
std::set<std::pair<int, int>> pairs_of(const std::vector<LinkFault>& faults, int size) {
  std::set<std::pair<int, int>> pairs;
  const auto add = [&](int a, int b) {
    if (a != b) pairs.emplace(std::min(a, b), std::max(a, b));
  };
  for (const auto& fault : faults) {
    add(fault.site, fault.peer);
    if (fault.site != fault.peer) continue;
    for (int rank = 0; rank < size; ++rank) add(fault.site, rank);
  }
  return pairs;
}

// Returns the peer that this site must take for the cause; nothing if its own links are whole, or
// it is the cause itself.
std::optional<int> peer_at_fault(const std::vector<LinkFault>& faults, int self, int size) {
  const auto is_own = [self](const LinkFault& fault) {
    return fault.site == self && fault.peer == self;
  };
  if (std::ranges::any_of(faults, is_own)) return std::nullopt;
  const auto pairs = pairs_of(faults, size);
  std::map<int, int> missing_links;
  for (const auto& [a, b] : pairs) {
    ++missing_links[a];
    ++missing_links[b];
  }
  std::optional<int> worst;
  for (int peer = 0; peer < size; ++peer) {
    if (!pairs.contains({std::min(peer, self), std::max(peer, self)})) continue;
    if (!worst || missing_links[peer] >= missing_links[*worst]) worst = peer;
  }
  return worst;
}

}  // namespace

std::string text_of(const std::vector<LinkFault>& faults) {
  FaultsFields fields;
  for (const auto& fault : faults) fields.faults.push_back({fault.peer, fault.text});
  return to_json(fields).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<LinkFault> read_link_faults(const std::string& text, int site, int size) {
  const auto fields = read_untrusted<FaultsFields>(text, "the list of faults");
  std::vector<LinkFault> faults;
  for (const auto& [peer, reason] : fields.faults) {
    if (peer < 0 || peer >= size || peer == site) {
      throw DataError(fmt::format("site {} of {} has no peer {}", site, size, peer));
    }
    faults.push_back({.site = site, .peer = static_cast<int>(peer), .text = reason});
  }
  return faults;
}

std::vector<LinkFault> share_faults(Store& store, const std::string& prefix,
                                    const MeshOptions& mesh, const std::vector<LinkFault>& own) {
  const auto texts = share(store, prefix + "/verdict", text_of(own), mesh.rank, mesh.size());
  std::vector<LinkFault> all;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const auto& text = texts[static_cast<std::size_t>(rank)];
    try {
      for (auto& fault : read_link_faults(text, rank, mesh.size())) all.push_back(std::move(fault));
    } catch (const DataError& error) {
      throw PeerError(mesh.sites[rank], fmt::format("what {} found of its links cannot be read: {}",
                                                    mesh.sites[rank], error.what()));
    }
  }
  if (!all.empty()) wait_until_all_know(store, prefix + "/known", mesh.rank, mesh.size());
  return all;
}

void require_links(const std::vector<LinkFault>& faults, const MeshOptions& mesh, LinkStage stage) {
  if (faults.empty()) return;
  auto shown = faults;
  if (stage != LinkStage::kStart) {
    std::erase_if(shown, [&](const LinkFault& fault) { return !concerns(fault, mesh.rank); });
  }
  if (stage == LinkStage::kRejoin && !shown.empty()) {
    throw LeftBehindError(fmt::format("site {} does not reach {}, as it did before",
                                      mesh.sites[mesh.rank], peers_without_link(shown, mesh)));
  }
  const bool ends = stage == LinkStage::kStart || (stage == LinkStage::kJoin && !shown.empty());
  if (shown.empty()) shown = faults;
  const auto text = text_of_all(shown);
  if (ends && !std::ranges::all_of(shown, &LinkFault::is_temporary)) throw ConfigError(text);
  if (ends) throw PeerError(mesh.sites[shown.front().site], text);
  const auto peer = peer_at_fault(faults, mesh.rank, mesh.size());
  throw PeerError(peer ? mesh.sites[*peer] : "", text);
}

}  // namespace farstep::wan
