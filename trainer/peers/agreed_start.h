// Compares the weights from which the sites of a run start.
#pragma once

#include <string>

#include "trainer/base/view.h"
#include "wan/transport/store.h"

namespace farstep {

// Returns if all members of the view start from the weights with this checksum. All members must
// call it; they exchange their checksums through `store`. Otherwise throws a DataError with each
// site's checksum and `remedy`, at all members. Throws PeerError as `store` does.
void require_same_start(const std::string& theta_hash, const std::string& remedy, const View& view,
                        wan::Store& store);

}  // namespace farstep
