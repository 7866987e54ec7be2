// A roster that has lost a site, which comes back: what it and the members send.
#pragma once

#include "tests/support/catch.h"
#include "tests/wan/roster/table.h"

namespace farstep::wan {

// Sites a and b in round 1 of generation 2, without c, which was lost in it.
inline Table without_c(int64_t fragments = 1) {
  Table table({"a", "b", "c"}, fragments, 1);
  table.join();
  for (const auto* site : {"a", "b"}) table.receive(site, arrival(1));
  table.pass(10, {"a", "b"});
  REQUIRE(table.roster.newest_change().starts_with("site c"));
  return table;
}

// Of c's new process, and of the member that has the state after round 1 for it.
inline const std::string kSomeToken = "0123456789abcdef0123456789abcdef";
inline const FetchMessage kFetch{"10.0.0.3", 4000, kSomeToken};
inline const OfferMessage kOffer{kSomeToken, 1, 0, "tcp://10.0.0.2:4000"};

inline ArriveMessage arrival_with(double uplink_bits_per_second, int64_t round,
                                  int64_t fragment = 0, int64_t fragments = 1) {
  ArriveMessage message = arrival(round, "aa", 2);
  message.fragment = fragment;
  message.contribution.fragments = fragments;
  message.contribution.timing.uplink_bits_per_second = uplink_bits_per_second;
  return message;
}

inline VoteMessage ballot_of(int64_t round, int64_t fragment = 0) {
  VoteMessage message = ballot(round, "bb", 2);
  message.fragment = fragment;
  return message;
}

}  // namespace farstep::wan
