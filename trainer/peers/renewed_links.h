// The links of the newest view and the exchange over them, made anew for each view. Connections of
// members that stay may be the same (Links).
//
// What was sent over earlier links still counts. among() belongs to the thread that syncs, or to
// another one while no sync is under way; all other methods are thread-safe. What connections()
// returned ends with the next among().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "outer_optimizer/exchange/exchange.h"
#include "trainer/base/view.h"
#include "trainer/peers/links.h"

namespace farstep {

class RenewedLinks : public outer_optimizer::Exchanges {
 public:
  // Makes the links of a view, with their exchange. Throws as Links().
  using Connect = std::function<std::unique_ptr<Links>(const View&)>;

  // Makes no links before the first among().
  explicit RenewedLinks(Connect connect) : connect_(std::move(connect)) {}

  // Makes the links of `view` if there are none yet. Closes the links of an older view before it
  // makes those of `view`. If that fails, there are no links until the next call.
  outer_optimizer::Exchange& among(const View& view) override;
  wan::Transport& connections(const View& view) override;

  // As in Peers, since the first view. links() is for the members of `view`, by place.
  LinkUse uplink() const;
  std::vector<LinkUse> links(const View& view) const;
  void measure();
  // Aborts all transfers on the links.
  void abort(const std::string& site, const std::string& reason);

 private:
  void close_links();

  const Connect connect_;
  mutable std::mutex mutex_;
  View view_;                                     // guarded by mutex_, as are all members below
  std::unique_ptr<Links> links_;                  // of view_; null while others are being made
  bool has_links_of_pairs_ = false;               // of the newest links
  wan::LinkState closed_uplink_;                  // of all links that were closed
  std::map<std::string, wan::LinkState> closed_;  // the same by site
};

}  // namespace farstep
