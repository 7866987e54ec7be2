#include "wan/protocol/protocol.h"

#include <limits>

#include "tests/support/catch.h"
#include "tests/support/source_folder.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep::wan {
namespace {

// Calls `check` with a default message of every alternative of a variant.
template <typename Variant, std::size_t I = 0, typename Check>
void for_each_message(Check check) {
  if constexpr (I < std::variant_size_v<Variant>) {
    check(std::variant_alternative_t<I, Variant>{});
    for_each_message<Variant, I + 1>(check);
  }
}

const std::string kSomeToken = "0123456789abcdef0123456789abcdef";

TEST_CASE("messages of a site come back as they were sent") {
  RegisterMessage request;
  request.site = "paris";
  request.run = Json::parse(R"({"name": "r", "outer": {"momentum": 0.9}})");
  request.resume = Resume::kAlways;
  request.states = {{3, "aa", 1, {"paris", "rome"}}, {4, "bb", {}, {}}};
  request.profile = {{"site", "paris"}};
  request.facts = {{"data_digest", "00ff"}, {"parameters", 12345678901}};
  const std::vector<SiteMessage> messages = {
      request,
      SuspectMessage{1, "b"},
      OfferMessage{kSomeToken, 4, 12.5, "tcp://10.0.0.1:4000"},
      PutMessage{"mesh/0/1", "00ff"},
      GetMessage{"mesh/0/1"},
      FetchMessage{"10.0.0.1", 4000, kSomeToken},
      HeartbeatMessage{1.5, 2, 3, "training", 4, 5},
      ArriveMessage{1, 2, 3, {{100, 4, 409600}, {120, 4, 2, 0.1, 0.3}}, "0123456789abcdef"},
      ArriveMessage{
          1,
          2,
          3,
          {.work = {.steps = 5, .batch = 1, .tokens = 9, .missing_steps = 2, .rates = 0.5},
           .figures = outer_optimizer::DeltaFigures{1.5, 0.5, 0.1, -3.5, 0.25, 8}},
          "0123456789abcdef"},
      VoteMessage{1, 2, 3, "0123456789abcdef"},
      MetricsMessage{3, 2.5, 4096, 1.5, 0.25},
      RecordsMessage{4096, "{\"event\":\"step\"}\n"},
      LeaveMessage{Outcome::kInterrupted, "Ctrl-C"},
  };
  CHECK(messages.size() == std::variant_size_v<SiteMessage> + 1);  // a delta with figures, too
  for (const auto& message : messages) {
    const auto frame = encode(message);
    const auto back = decode_site_message(frame);
    CHECK(back.index() == message.index());
    CHECK(encode(back) == frame);
  }
}

TEST_CASE("messages of the coordinator come back as they were sent") {
  const std::vector<CoordinatorMessage> messages = {
      WaitingMessage{{"b", "c"}},
      Welcome{Json::parse(R"({"name": "r"})"),
              1,
              {"a", "b"},
              1,
              7,
              {{"a", nullptr}, {"b", Json{{"site", "b"}}}},
              2,
              true,
              "the run leaves that after 6 rounds",
              5},
      ClaimMessage{17},
      RefusedMessage{"no", true, true, 3},
      StoredMessage{"k"},
      ValueMessage{"k", ""},
      HeartbeatAckMessage{1.25, 1.5, "site b: silent", 5, 77, "0123456789abcdef"},
      Go{1,
         2,
         3,
         {{{1, 2, 3}, {4, 5, 6, 0.5}}, {{7, 8, 9}, {}, 2}},
         {"a", "b"},
         {{"c", {"10.0.0.1", 4000, kSomeToken}, "a"}},
         {{"b", true, "has a value of 1e+30"}}},
      CommittedMessage{1, 2, 3},
      DonateMessage{4, {"c", {"10.0.0.1", 4000, kSomeToken}, "a"}, 12.5},
      UnwantedMessage{kSomeToken, 4},
      HandoverMessage{kSomeToken, "a", 2, "0123456789abcdef", "tcp://10.0.0.1:4000"},
      LateMessage{3, 0},
      ViewMessage{2, {"a", "c"}, "b", "silent", 2, "", 4, 1, 5},
      PeerLostMessage{"b", "silent", 5},
      StopMessage{"differs", 5},
      UnknownSiteMessage{"who"},
      ErrorMessage{"what"},
      GoodbyeMessage{},
  };
  CHECK(messages.size() == std::variant_size_v<CoordinatorMessage>);
  for (const auto& message : messages) {
    const auto frame = encode(message);
    const auto back = decode_coordinator_message(frame);
    CHECK(back.index() == message.index());
    CHECK(encode(back) == frame);
  }
}

// It went to the address that the message names: to a server there it was a command.
TEST_CASE("a token is so many hexadecimal digits and nothing else") {
  const auto upper = "ABCDEF" + kSomeToken.substr(6);
  for (const std::string& token :
       {std::string("GET / HTTP/1.1\r\nHost: internal\r\n\r\n"), std::string(), upper,
        kSomeToken.substr(1), kSomeToken + "0", kSomeToken.substr(1) + "\n"}) {
    CAPTURE(token);
    const Newcomer newcomer{"c", {"10.0.0.1", 4000, token}, "a"};
    for (const SiteMessage& message :
         {SiteMessage(newcomer.request), SiteMessage(OfferMessage{token, 4})}) {
      CHECK_THROWS_WITH(decode_site_message(encode(message)), Catch::Contains("token: "));
    }
    for (const CoordinatorMessage& message :
         {CoordinatorMessage(DonateMessage{4, newcomer, 0}),
          CoordinatorMessage(Go{.contributions = {}, .newcomers = {newcomer}}),
          CoordinatorMessage(HandoverMessage{token, "a", 2, "00", ""}),
          CoordinatorMessage(UnwantedMessage{token, 4})}) {
      CHECK_THROWS_WITH(decode_coordinator_message(encode(message)), Catch::Contains("token: "));
    }
  }
}

TEST_CASE("what is no message of Farstep is bad data") {
  const std::vector<std::string> frames = {
      "",
      "\xff\xfe garbage",
      "GET / HTTP/1.1",
      "[]",
      "null",
      "{}",
      R"({"protocol": 19})",
      R"({"type": "get", "key": "k"})",
      R"({"protocol": "7", "type": "get"})",
      R"({"protocol": 19, "type": 7})",
      R"({"protocol": 19, "type": "get", "key": "k")",
      std::string(100000, '['),
      R"({"protocol": 19, "type": "register", "facts": )" + std::string(80, '[') +
          std::string(80, ']') + "}",
  };
  for (const auto& frame : frames) CHECK_THROWS_AS(decode_site_message(frame), DataError);
}

TEST_CASE("what is wrong with bytes that are no message is told without them") {
  CHECK_THROWS_WITH(decode_site_message("\xff\xfe garbage"),
                    "a control message is not JSON at byte 1");
  CHECK_THROWS_WITH(decode_site_message(R"({"type": "\u0007)" + std::string(1000, 'x')),
                    Catch::StartsWith("a control message is not JSON at byte 10"));
  CHECK_THROWS_WITH(decode_site_message(R"({"protocol": 1e999})"),
                    Catch::Contains("a number is too large"));
}

TEST_CASE("a wrong message of Farstep is refused with what is wrong") {
  struct Row {
    std::string frame, message;
  };
  const std::vector<Row> table = {
      {R"({"protocol": 1, "type": "get", "key": "k"})", "of protocol 1"},
      {R"({"protocol": 1, "type": "something new"})", "of protocol 1"},
      {R"({"protocol": 19, "type": "dance"})", "unknown type 'dance'"},
      {R"({"protocol": 19, "type": "welcome"})", "unknown type 'welcome'"},
      {R"({"protocol": 19, "type": "get"})", "message get: key: is missing"},
      {R"({"protocol": 19, "type": "get", "key": 4})", "message get: key: is 4"},
      {R"({"protocol": 19, "type": "get", "kye": "k", "key": "k"})", "did you mean 'key'"},
      {R"({"protocol": 19, "type": "leave", "outcome": "bored"})", "must be one of done"},
      {R"({"protocol": 19, "type": "arrive", "generation": 1, "round": 1, "fragment": 0,
           "theta_hash": "a", "contribution": {"work": {"steps": -1, "batch": 1, "tokens": 1}}})",
       "contribution.work.steps: is -1"},
  };
  for (const auto& row : table) {
    CHECK_THROWS_WITH(decode_site_message(row.frame), Catch::Contains(row.message));
    CHECK_THROWS_AS(decode_site_message(row.frame), ConfigError);
  }
}

// Each of these frames is as long as a stranger's may be, and took minutes or all memory.
TEST_CASE("no frame of 16 MiB keeps the coordinator busy") {
  constexpr std::size_t kFrameBytes = std::size_t{16} << 20;
  const auto filled = [](std::string frame, std::string_view filler, std::string_view end) {
    while (frame.size() + filler.size() + end.size() <= kFrameBytes) frame += filler;
    return frame.append(end);
  };
  const std::string head = R"({"protocol":6,"type":"get","key":"a")";
  CHECK_THROWS_AS(decode_site_message(filled(head + ",\"b\":", "[", "")), DataError);
  CHECK_THROWS_AS(decode_site_message(filled(head, ",\"b\":1", "}")), DataError);
  CHECK_THROWS_AS(decode_site_message(filled(head + ",\"b\":[1", ",1", "]}")), DataError);
  // The name of an unknown member is compared with those that are known.
  CHECK_THROWS_AS(decode_site_message(filled(head + ",\"", "k", "\":1}")), ConfigError);
}

TEST_CASE("counts beyond every run are refused, as the next one would overflow") {
  auto arrival = to_json(ArriveMessage{});
  for (const char* field : {"round", "fragment", "generation"}) {
    for (const int64_t count : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
      auto json = arrival;
      json.update({{"protocol", kProtocolVersion}, {"type", "arrive"}, {"theta_hash", "a"}});
      CHECK_NOTHROW(decode_site_message(json.dump()));
      json[field] = count;
      CHECK_THROWS_WITH(decode_site_message(json.dump()), Catch::Contains(field));
    }
  }
}

TEST_CASE("the end of a coordinator is a loss of no site") {
  const CoordinatorMessage end = PeerLostMessage{"", "it ends", 5};
  CHECK(encode(decode_coordinator_message(encode(end))) == encode(end));
}

TEST_CASE("text that is not UTF-8 does not break a message") {
  const auto back = decode_site_message(encode(LeaveMessage{Outcome::kFailed, "file \xff.bin"}));
  CHECK_THAT(std::get<LeaveMessage>(back).message, Catch::StartsWith("file "));
}

TEST_CASE("an answer fits the request that it names and no other") {
  CHECK(answers(Welcome{}, RegisterMessage{}));
  CHECK(answers(RefusedMessage{}, RegisterMessage{}));
  CHECK_FALSE(answers(WaitingMessage{}, RegisterMessage{}));
  CHECK_FALSE(answers(ClaimMessage{}, RegisterMessage{}));
  CHECK(answers(StoredMessage{"k"}, PutMessage{"k", "00"}));
  CHECK_FALSE(answers(StoredMessage{"k"}, PutMessage{"other", "00"}));
  CHECK(answers(StoredMessage{"t"}, OfferMessage{"t", 4}));
  CHECK_FALSE(answers(StoredMessage{"t"}, OfferMessage{"other", 4}));
  CHECK(answers(UnwantedMessage{"t", 4}, OfferMessage{"t", 4}));
  CHECK_FALSE(answers(UnwantedMessage{"t", 4}, OfferMessage{"other", 4}));
  CHECK_FALSE(answers(UnwantedMessage{"t", 3}, OfferMessage{"t", 4}));  // an older offer's
  CHECK(answers(ValueMessage{"k", "00"}, GetMessage{"k"}));
  CHECK_FALSE(answers(ValueMessage{"k", "00"}, GetMessage{"other"}));
  CHECK_FALSE(answers(StoredMessage{"k"}, GetMessage{"k"}));
  CHECK(answers(Go{1, 2, 0, {}}, ArriveMessage{1, 2, 0, {}, "a"}));
  CHECK_FALSE(answers(Go{1, 1, 0, {}}, ArriveMessage{1, 2, 0, {}, "a"}));
  CHECK_FALSE(answers(Go{2, 2, 0, {}}, ArriveMessage{1, 2, 0, {}, "a"}));
  CHECK(answers(CommittedMessage{1, 2, 0}, VoteMessage{1, 2, 0, "a"}));
  CHECK_FALSE(answers(CommittedMessage{1, 2, 0}, ArriveMessage{1, 2, 0, {}, "a"}));
  CHECK(answers(GoodbyeMessage{}, LeaveMessage{}));
  // A new generation answers what was asked in an older one.
  const ViewMessage view{2, {"a"}, "b", "silent"};
  CHECK(answers(view, ArriveMessage{1, 2, 0, {}, "a"}));
  CHECK(answers(view, VoteMessage{1, 2, 0, "a"}));
  CHECK(answers(view, SuspectMessage{1, "b"}));
  CHECK_FALSE(answers(view, ArriveMessage{2, 2, 0, {}, "a"}));
  CHECK_FALSE(answers(view, VoteMessage{2, 2, 0, "a"}));
  CHECK_FALSE(answers(view, SuspectMessage{2, "b"}));
}

TEST_CASE("hexadecimal text gives back any bytes") {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  CHECK(from_hex(to_hex(bytes)) == bytes);
  CHECK(to_hex(std::string_view("\0\x0f\xa0", 3)) == "000fa0");
  CHECK(from_hex("").empty());
  CHECK_THROWS_AS(from_hex("0"), DataError);
  CHECK_THROWS_AS(from_hex("0g"), DataError);
  CHECK_THROWS_AS(from_hex("AB"), DataError);
}

TEST_CASE("the protocol document names its version, every message and every field") {
  const auto document = read_file(source_folder() / "docs/internals/protocol.md");
  CHECK_THAT(document, Catch::Contains(fmt::format("version **{}**", kProtocolVersion)));
  const auto check = [&](auto message) {
    INFO(message.kType);
    const auto heading = fmt::format("### `{}`", message.kType);
    const auto start = document.find(heading);
    REQUIRE(start != std::string::npos);
    const auto section = document.substr(start, document.find("\n#", start) - start);
    for (const auto& row : list_fields<decltype(message)>()) {
      CHECK_THAT(section, Catch::Contains("`" + row.path.substr(row.path.find_last_of('.') + 1)));
    }
  };
  for_each_message<SiteMessage>(check);
  for_each_message<CoordinatorMessage>(check);
}

}  // namespace
}  // namespace farstep::wan
