// What every Transport promises, as checks that the tests of each implementation run.
#pragma once

#include <functional>

#include "tests/wan/transport/meshes.h"

namespace farstep::wan {

using MakeMesh = std::function<Transports(int n, double stall_seconds)>;

// Every rank sends every other one `bytes` bytes; content and counters are checked.
void check_all_pairs(const MakeMesh& make, int n, std::size_t bytes);
// A link tells what went over it, and only that; the uplink tells of all; also after an abort.
void check_links(const MakeMesh& make);
// Messages of one tag keep their order; messages of two tags may be waited for in any order.
void check_tags(const MakeMesh& make);
// A message may be received long before and long after it is sent.
void check_early_and_late(const MakeMesh& make);
// abort() from another thread wakes a wait within 0.1 s with its site and reason.
void check_abort(const MakeMesh& make);
// A site that goes away is named promptly, even by those that wait for somebody else.
void check_dying_rank(const MakeMesh& make);
// A peer that never sends is named when the stall deadline has passed.
void check_stall(const MakeMesh& make);
// A transfer given up leaves its memory alone and ends the transport on both sides.
void check_given_up(const MakeMesh& make);
// Sides that disagree on a message's size fail with an Error; nobody's process dies.
void check_size_mismatch(const MakeMesh& make);

}  // namespace farstep::wan
