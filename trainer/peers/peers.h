// The other sites of a run, as the training loop uses them.
//
// Places and links belong to the view of the round. A sync may find a newer view, since members can
// be lost at any time: the next round adopts it. The training thread calls all methods, except
// those of Rendezvous and Exchanges.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "outer_optimizer/exchange/exchange.h"
#include "trainer/base/view.h"
#include "wan/protocol/protocol.h"
#include "wan/protocol/rendezvous.h"
#include "wan/transport/transport.h"

namespace farstep {

// The use of a link or of the uplink since it was made, and the measured speed of its messages.
struct LinkUse {
  wan::LinkState state;
  std::optional<double> bits_per_second;  // nullopt until a measurement exists
};

class Peers {
 public:
  virtual ~Peers() = default;

  // The view of the round under way.
  virtual const View& view() const = 0;
  // Takes the view in which the round's newest sync was committed, if that is newer. Returns
  // whether it is. Called between two rounds.
  virtual bool adopt(int64_t generation, const std::vector<std::string>& members) = 0;
  // Returns the views that have begun up to the present one, oldest first, each once.
  virtual std::vector<wan::ViewMessage> take_new_views() = 0;
  // Returns the coordinator's requests to hand over the state after `round`. Drops those for an
  // older one, and keeps those for a newer one. A request that no offer follows comes again.
  virtual std::vector<wan::DonateMessage> take_state_requests(int64_t round) = 0;
  virtual wan::Rendezvous& rendezvous() = 0;
  // The exchanges by which members average their deltas.
  virtual outer_optimizer::Exchanges& exchanges() = 0;

  // The use of all links together.
  virtual LinkUse uplink() const = 0;
  // The use of the link to each member of the view, by place; the own place is empty. The vector is
  // empty if the exchange has no link for each pair of sites.
  virtual std::vector<LinkUse> links() const = 0;
  // Updates the measured speeds of the links. Called after a sync, when nothing is being sent.
  virtual void measure_links() = 0;

  // Sets the activity that the next heartbeats report.
  virtual void set_activity(int64_t round, int64_t step, const std::string& text) = 0;
  // Sends a round's figures to the coordinator; does not wait.
  virtual void report(const wan::MetricsMessage& metrics) = 0;
  // Returns whether the run cannot continue with this view; does not wait.
  virtual bool has_failed() const = 0;
  // Throws PeerError or InternalError if has_failed().
  virtual void throw_if_failed() const = 0;
};

}  // namespace farstep
