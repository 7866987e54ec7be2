// Whether a coordinator elsewhere answers at its endpoint, over the way that the run takes to it.
#pragma once

#include "trainer/base/clock.h"
#include "trainer/doctor/finding.h"
#include "trainer/settings/site_config.h"

namespace farstep {

// Connects to a coordinator of the site's config that the site does not host, and waits for its
// first bytes, or with network.keys until it has let the site in: for at most `patience_seconds`
// with each address of its host. That nobody listens there is a warning, as before a run nobody
// does.
Finding coordinator_answer(const SiteConfig& site, const CoordinatorPlace& coordinator,
                           double patience_seconds, const Clock& clock);

}  // namespace farstep
