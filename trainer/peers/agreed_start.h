// On what the sites of a run agree before the first step: the round to which they go back, the
// weights from which they start, and the learning rate at which a resume goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/base/view.h"
#include "trainer/rate/resumed_rate.h"
#include "wan/transport/store.h"

namespace farstep {

// Returns if all members of the view were told to go back to the same round, or all to none. All
// members must call it with their own, before any removes a checkpoint; they exchange them through
// `store`. Otherwise throws a ConfigError that names another site, at all members. Throws PeerError
// as `store` does.
void require_same_round(std::optional<int64_t> own, const View& view, wan::Store& store);

// Returns if all members of the view start from the weights with this checksum. All members must
// call it; they exchange their checksums through `store`. Otherwise throws a DataError with each
// site's checksum and `remedy`, at all members. Throws PeerError as `store` does.
void require_same_start(const std::string& theta_hash, const std::string& remedy, const View& view,
                        wan::Store& store);

// Returns the state of the member that has come furthest. All members must call it with their own;
// they exchange them through `store`. In mid-round their positions differ, and each alone would
// decide otherwise on whether its rate has fallen. Throws PeerError as `store` does, or if what a
// member tells cannot be.
RateState agreed_rate(const RateState& own, const View& view, wan::Store& store);

}  // namespace farstep
