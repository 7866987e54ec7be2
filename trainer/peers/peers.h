// The other sites of a run, as the training loop uses them.
//
// Places, exchange and links belong to the present view. The training thread calls all methods.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "outer_optimizer/exchange/exchange.h"
#include "trainer/base/view.h"
#include "wan/membership/protocol.h"
#include "wan/membership/rendezvous.h"
#include "wan/transport/transport.h"

namespace farstep {

// The use of a link or of the uplink since it was made, and the measured speed of its messages.
struct LinkUse {
  LinkState state;
  std::optional<double> bits_per_second;  // nullopt until a measurement exists
};

class Peers {
 public:
  virtual ~Peers() = default;

  virtual const View& view() const = 0;
  virtual Rendezvous& rendezvous() = 0;
  // The exchange by which the members of the view average their deltas.
  virtual Exchange& exchange() = 0;

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
  virtual void report(const MetricsMessage& metrics) = 0;
  // Returns whether the run cannot continue with this view; does not wait.
  virtual bool has_failed() const = 0;
  // Throws PeerError or InternalError if has_failed().
  virtual void throw_if_failed() const = 0;
};

}  // namespace farstep
