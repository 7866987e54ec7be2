// The model of a link against numbers worked out by hand.
#include "wan/link/link_model.h"

#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/error.h"
#include "trainer/config/json_fields.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

// 1250 bytes take 10 ms.
const LinkShape kSlow{.rate_bits_per_second = 1e6, .delay_seconds = 0.05};

}  // namespace

TEST_CASE("what is sent leaves at the rate and arrives after the delay") {
  LinkModel link(kSlow, 1);
  CHECK(link.start_seconds(7) == 7);
  const auto transit = link.send(7, 1250);
  CHECK(transit.leave_seconds == Approx(7.01));
  CHECK(transit.arrive_seconds == Approx(7.06));
  CHECK(link.start_seconds(7) == transit.leave_seconds);
  CHECK(link.start_seconds(8) == 8);
}

TEST_CASE("a caller's lower rate and pause count as a part of leaving") {
  LinkModel link(kSlow, 1);
  CHECK(link.send(0, 1250, 5e5).leave_seconds == Approx(0.02));
  CHECK(link.send(1, 1250, 1e9).leave_seconds == Approx(1.01));
  const auto paused = link.send(2, 1250, 1e9, 0.1);
  CHECK(paused.leave_seconds == Approx(2.11));
  CHECK(paused.arrive_seconds == Approx(2.16));
  CHECK(link.start_seconds(2) == Approx(2.11));
}

TEST_CASE("a new shape holds from its time on and nothing overtakes") {
  LinkModel link(kSlow, 1);
  const auto first = link.send(0, 1250);
  auto near = kSlow;
  near.delay_seconds = 0;
  link.set_shape(near, 0.02);
  CHECK(link.start_seconds(0) == 0.02);
  CHECK(link.send(0.02, 1250).arrive_seconds == first.arrive_seconds);
}

TEST_CASE("key and number alone decide which packets are lost") {
  const auto lost_of = [](uint64_t key, double rate) {
    LinkModel link({.rate_bits_per_second = rate, .loss = 0.3}, key);
    std::vector<bool> lost;
    for (int i = 0; i < 500; ++i) lost.push_back(link.loses_packet());
    return lost;
  };
  CHECK(lost_of(1, 1e6) == lost_of(1, 1e9));
  CHECK(lost_of(1, 1e6) != lost_of(2, 1e6));
}

TEST_CASE("a link shape that is printed reads the same") {
  const LinkShape shape{.rate_bits_per_second = 5e7,
                        .delay_seconds = 0.02,
                        .loss = 0.001,
                        .queue_seconds = 0.2,
                        .is_cut = true};
  CHECK(read_json<LinkShape>(to_json(shape), "f.json") == shape);
  CHECK(read_json<LinkShape>(Json::parse(R"({"rate_bits_per_second":1000})"), "f.json") ==
        LinkShape{.rate_bits_per_second = 1000});
}

TEST_CASE("a link shape that cannot be is refused") {
  for (const char* text : {
           R"({})",
           R"({"rate_bits_per_second":0})",
           R"({"rate_bits_per_second":1,"loss":1.5})",
           R"({"rate_bits_per_second":1,"delay_seconds":-1})",
           R"({"rate_bits_per_second":1,"queue_seconds":-1})",
       }) {
    CHECK_THROWS_AS(read_json<LinkShape>(Json::parse(text), "f.json"), ConfigError);
  }
}
