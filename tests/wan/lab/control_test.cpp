// What a running lab answers to requests, and over its socket.
#include "wan/lab/control.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/config/json_fields.h"

using namespace farstep;
using namespace farstep::wan;
using Catch::Contains;

namespace {

const LabSpec kTwoSites{.sites = {{.rate_bits_per_second = 1e6, .delay_seconds = 0.01},
                                  {.rate_bits_per_second = 2e6, .delay_seconds = 0.02}}};

Json ask(Router& router, const std::string& request) {
  return Json::parse(answer_request(router, request));
}

// A client that has sent `request`.
int client_with(const std::filesystem::path& path, const std::string& request) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  const int client = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
  REQUIRE(::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(::send(client, request.data(), request.size(), 0) ==
          static_cast<ssize_t>(request.size()));
  return client;
}

std::string answer_of(int client) {
  std::string answer(65536, '\0');
  const auto bytes = ::recv(client, answer.data(), answer.size(), 0);
  REQUIRE(bytes > 0);
  answer.resize(static_cast<std::size_t>(bytes));
  return answer;
}

}  // namespace

TEST_CASE("set changes what it names of one site and keeps the rest") {
  Router router(kTwoSites);
  const auto answer =
      ask(router, R"({"command":"set","site":2,"rate_bits_per_second":5e7,"loss":0.01})");
  auto expected = kTwoSites.sites[1];
  expected.rate_bits_per_second = 5e7;
  expected.loss = 0.01;
  CHECK(answer == to_json(expected));
  CHECK(router.shape(1) == expected);
  CHECK(router.shape(0) == kTwoSites.sites[0]);
  ask(router, R"({"command":"set","site":2,"delay_seconds":0,"queue_seconds":0.5})");
  expected.delay_seconds = 0;
  expected.queue_seconds = 0.5;
  CHECK(router.shape(1) == expected);
}

TEST_CASE("a site is cut and healed with its shape kept") {
  Router router(kTwoSites);
  ask(router, R"({"command":"cut","site":1})");
  CHECK(router.shape(0).is_cut);
  CHECK_FALSE(router.shape(1).is_cut);
  ask(router, R"({"command":"heal","site":1})");
  CHECK(router.shape(0) == kTwoSites.sites[0]);
}

TEST_CASE("counters are answered as JSON") {
  Router router(kTwoSites);
  CHECK(ask(router, R"({"command":"counters"})") == to_json(router.counters()));
}

TEST_CASE("a request that cannot be carried out changes nothing and says why") {
  Router router(kTwoSites);
  const auto error_of = [&](const std::string& request) {
    return ask(router, request).at("error").get<std::string>();
  };
  CHECK(error_of("nonsense") == "request is not JSON at byte 2");
  CHECK(error_of("\xff\xfe") == "request is not JSON at byte 1");
  CHECK_THAT(error_of("[]"), Contains("must be an object"));
  CHECK_THAT(error_of(R"({"command":"cur","site":1})"), Contains("set, cut, heal, counters"));
  CHECK_THAT(error_of(R"({"command":"cut"})"), Contains("site: must be from 1 to 2"));
  CHECK_THAT(error_of(R"({"command":"cut","site":3})"), Contains("site: must be from 1 to 2"));
  CHECK_THAT(error_of(R"({"command":"cut","site":0})"), Contains("site"));
  CHECK_THAT(error_of(R"({"command":"set","site":1,"loss":2})"), Contains("from 0 to 1"));
  CHECK_THAT(error_of(R"({"command":"set","site":1,"los":2})"), Contains("did you mean 'loss'"));
  CHECK(router.shape(0) == kTwoSites.sites[0]);
}

TEST_CASE("the control socket answers many clients in whatever order they come") {
  Router router(kTwoSites);
  const TemporaryFolder folder;
  LabControl control(folder / "control");
  const int first = client_with(folder / "control", R"({"command":"cut","site":1})");
  const int gone = client_with(folder / "control", R"({"command":"cut","site":2})");
  ::close(gone);
  const int second = client_with(folder / "control", R"({"command":"counters"})");
  for (int i = 0; i < 4; ++i) control.serve(router);  // one client is let in at a time
  CHECK(Json::parse(answer_of(first)).at("is_cut") == true);
  CHECK(Json::parse(answer_of(second)) == to_json(router.counters()));
  CHECK(router.shape(1).is_cut);
  control.serve(router);  // nothing to do
  ::close(first);
  ::close(second);
}

TEST_CASE("a folder is used by one lab alone even after one that was killed") {
  const TemporaryFolder folder;
  {
    LabControl control(folder / "control");
    CHECK_THROWS_WITH(LabControl(folder / "control"), Contains("a lab runs in this folder"));
  }
  CHECK_FALSE(std::filesystem::exists(folder / "control"));
  const int stale = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (folder / "control").c_str());
  REQUIRE(::bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  ::close(stale);
  CHECK_NOTHROW(LabControl(folder / "control"));
}

TEST_CASE("a folder that cannot hold a socket is refused") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(LabControl(folder / "missing" / "control"), Contains("No such file"));
  CHECK_THROWS_WITH(LabControl(folder / std::string(120, 'x')), Contains("shorter path"));
}
