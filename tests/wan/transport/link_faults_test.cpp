#include "wan/transport/link_faults.h"

#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "tests/wan/transport/meshes.h"
#include "tests/wan/transport/run_ranks.h"

namespace farstep::wan {
namespace {

// A link that `site` has not made to `peer`.
LinkFault fault(int site, int peer) {
  return {site, peer, fmt::format("{} to {}", site, peer)};
}

// What each of `n` sites throws: "config: MESSAGE", or "SITE: MESSAGE" of a PeerError.
std::vector<std::string> thrown_by(int n, const std::vector<LinkFault>& faults, LinkStage stage) {
  std::vector<std::string> errors;
  for (int rank = 0; rank < n; ++rank) {
    try {
      errors.push_back(peer_error([&] { require_links(faults, loopback_mesh(n, rank), stage); }));
    } catch (const ConfigError& error) {
      errors.push_back(std::string("config: ") + error.what());
    }
  }
  return errors;
}

using Texts = std::vector<std::string>;

TEST_CASE("whole links let all sites go on at every stage") {
  for (const auto stage :
       {LinkStage::kStart, LinkStage::kJoin, LinkStage::kRejoin, LinkStage::kRun}) {
    CHECK(thrown_by(2, {}, stage) == Texts{"", ""});
  }
}

// Its config was right before, so the text advises no change, and the site tries again.
TEST_CASE("a site that joins again and does not reach a member is left behind") {
  const std::vector<LinkFault> faults{fault(1, 2), fault(2, 1)};
  const auto mesh = loopback_mesh(3, 2);
  CHECK_THROWS_AS(require_links(faults, mesh, LinkStage::kRejoin), LeftBehindError);
  const auto text =
      fmt::format("site {} does not reach {}, as it did before", mesh.sites[2], mesh.sites[1]);
  CHECK(peer_error([&] { require_links(faults, mesh, LinkStage::kRejoin); }) == ": " + text);
  // A fault of others is a loss to it, as to a member.
  CHECK(thrown_by(4, {fault(1, 2)}, LinkStage::kRejoin)[3] ==
        thrown_by(4, {fault(1, 2)}, LinkStage::kRun)[3]);
}

TEST_CASE("at the start one pair without a link ends all sites with the same list") {
  const Texts all(3, "config: 1 to 2\n2 to 1");
  CHECK(thrown_by(3, {fault(1, 2), fault(2, 1)}, LinkStage::kStart) == all);
}

TEST_CASE("in a run a pair without a link is the loss of a peer, to both of them") {
  CHECK(thrown_by(3, {fault(1, 2)}, LinkStage::kRun) ==
        Texts{": 1 to 2", "node3: 1 to 2", "node2: 1 to 2"});
}

TEST_CASE("in a run the site that nobody reaches is what all others have lost") {
  const auto errors = thrown_by(4, {fault(0, 2), fault(1, 2), fault(3, 2)}, LinkStage::kRun);
  for (const int rank : {0, 1, 3}) {
    CHECK(errors[rank] == fmt::format("node3: {} to 2", rank));
  }
  // One that lacks two links is the cause rather than one that lacks this one alone.
  const auto two = thrown_by(4, {fault(1, 0), fault(1, 2), fault(2, 3)}, LinkStage::kRun);
  CHECK_THAT(two[0], Catch::StartsWith("node2: "));
  CHECK_THAT(two[2], Catch::StartsWith("node2: "));
  CHECK_THAT(two[3], Catch::StartsWith("node3: "));
}

TEST_CASE("a site that joins ends by its own fault, and is a lost peer to the members") {
  const std::vector<LinkFault> faults{fault(0, 2), fault(1, 2)};
  CHECK(thrown_by(3, faults, LinkStage::kJoin)[2] == "config: 0 to 2\n1 to 2");
  const auto members = thrown_by(3, faults, LinkStage::kRun);
  CHECK(members[0] == "node3: 0 to 2");
  CHECK(members[1] == "node3: 1 to 2");
  // That others do not reach each other is not its own.
  CHECK(thrown_by(3, {fault(0, 1)}, LinkStage::kJoin)[2] == ": 0 to 1");
}

TEST_CASE("a site that cannot listen is named by all, and may do so later") {
  const std::vector<LinkFault> faults{{2, 2, "no port", true}};
  CHECK(thrown_by(3, faults, LinkStage::kStart) == Texts(3, "node3: no port"));
  CHECK(thrown_by(3, faults, LinkStage::kJoin)[2] == "node3: no port");
  CHECK(thrown_by(3, faults, LinkStage::kJoin)[0] == "node3: no port");
  // As a member it tries again with the others, whom it does not suspect.
  CHECK(thrown_by(3, faults, LinkStage::kRun) ==
        Texts{"node3: no port", "node3: no port", ": no port"});
  const std::vector<LinkFault> lasting{{2, 2, "no port", false}};
  CHECK(thrown_by(3, lasting, LinkStage::kStart) == Texts(3, "config: no port"));
  CHECK(thrown_by(3, lasting, LinkStage::kJoin)[2] == "config: no port");
}

TEST_CASE("faults that sites share are the same ones at all of them") {
  MemoryStore store(5);
  const auto shared = run_ranks(3, [&](int rank) {
    std::vector<LinkFault> own;
    if (rank > 0) own = {fault(rank, 0), {rank, 3 - rank, "line one\nline \"two\""}};
    return text_of(share_faults(store, "prefix", loopback_mesh(3, rank), own));
  });
  CHECK(shared[1] == shared[0]);
  CHECK(shared[2] == shared[0]);
  CHECK_THAT(shared[0], Catch::Contains("1 to 0") && Catch::Contains("2 to 0"));
}

TEST_CASE("faults come back as they were published") {
  CHECK(read_link_faults(text_of(std::vector<LinkFault>{}), 0, 2).empty());
  const auto back = read_link_faults(text_of({fault(1, 0), fault(1, 2)}), 1, 3);
  REQUIRE(back.size() == 2);
  CHECK((back[0].site == 1 && back[0].peer == 0 && back[0].text == "1 to 0"));
  CHECK(back[1].peer == 2);
}

// The peer's rank becomes an index.
TEST_CASE("faults of no peer, and what is no list of faults, are refused with the site's name") {
  for (const char* text :
       {"", "[]", "{}", R"({"faults":[{"peer":2,"text":""}]})",
        R"({"faults":[{"peer":-1,"text":""}]})", R"({"faults":[{"peer":1,"text":""}]})",
        R"({"faults":[{"peer":0}]})", R"({"faults":[{"peer":0.5,"text":""}]})", "[[[[[[[[[["}) {
    CAPTURE(text);
    CHECK_THROWS_AS(read_link_faults(text, 1, 2), DataError);
    MemoryStore store(5);
    store.put("prefix/verdict/1", text);
    CHECK_THAT(peer_error([&] { share_faults(store, "prefix", loopback_mesh(2, 0), {}); }),
               Catch::StartsWith("node2: what node2 found of its links cannot be read"));
  }
}

}  // namespace
}  // namespace farstep::wan
