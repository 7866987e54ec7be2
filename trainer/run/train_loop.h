// The training loop of a site.
#pragma once

#include <stop_token>

#include "trainer/run/session.h"

namespace farstep {

// Trains until the run's last round is committed, or until `stop` is asked for. Returns the process
// exit code: 0 when the run is done, 130 when it was stopped; either way a checkpoint of the last
// step is on the disk, as it is when a PeerError is thrown.
int train(Session& session, const std::stop_token& stop);

}  // namespace farstep
