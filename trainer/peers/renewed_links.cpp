// Links are renewed when a sync needs them for another view. Their totals go on: what closed links
// have carried is added to that of the present ones, by the peer's name.
#include "trainer/peers/renewed_links.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "wan/transport/link_meter.h"

namespace farstep {

outer_optimizer::Exchange& RenewedLinks::among(const View& view) {
  {
    const std::lock_guard lock(mutex_);
    if (links_ && view == view_) return links_->exchange();
    close_links();
    view_ = view;
  }
  // Not under the lock: the training thread reads figures while this waits for the peers.
  auto links = connect_(view);
  const std::lock_guard lock(mutex_);
  links_ = std::move(links);
  has_links_of_pairs_ = !links_->links().empty();
  return links_->exchange();
}

wan::Transport& RenewedLinks::connections(const View& view) {
  const std::lock_guard lock(mutex_);
  FARSTEP_CHECK(links_ && view == view_, "no links of generation {}", view.generation);
  return links_->transport();
}

// The caller holds mutex_. A view's ports are free for the next one's only when its links are gone.
void RenewedLinks::close_links() {
  if (!links_) return;
  closed_uplink_ = sum(closed_uplink_, links_->uplink().state);
  const auto uses = links_->links();
  for (std::size_t place = 0; place < uses.size(); ++place) {
    auto& closed = closed_[view_.members[place]];
    closed = sum(closed, uses[place].state);
  }
  links_.reset();
}

LinkUse RenewedLinks::uplink() const {
  const std::lock_guard lock(mutex_);
  LinkUse use = links_ ? links_->uplink() : LinkUse{};
  use.state = sum(closed_uplink_, use.state);
  return use;
}

std::vector<LinkUse> RenewedLinks::links(const View& view) const {
  const std::lock_guard lock(mutex_);
  if (!has_links_of_pairs_) return {};
  const auto present = links_ ? links_->links() : std::vector<LinkUse>{};
  std::vector<LinkUse> uses;
  for (const auto& member : view.members) {
    const auto place = std::ranges::find(view_.members, member) - view_.members.begin();
    LinkUse use =
        place < std::ssize(present) ? present[static_cast<std::size_t>(place)] : LinkUse{};
    if (const auto closed = closed_.find(member); closed != closed_.end()) {
      use.state = sum(closed->second, use.state);
    }
    uses.push_back(use);
  }
  return uses;
}

void RenewedLinks::measure() {
  const std::lock_guard lock(mutex_);
  if (links_) links_->measure();
}

void RenewedLinks::abort(const std::string& site, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (links_) links_->abort(site, reason);
}

}  // namespace farstep
