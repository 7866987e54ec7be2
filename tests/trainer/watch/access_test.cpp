#include "trainer/watch/access.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

const std::string kToken = "0123456789abcdef-_";

int status_of(const HttpRequest& request, const std::string& token) {
  const auto refused = refusal(request, token);
  return refused ? refused->status : 200;
}

HttpRequest request_of(const std::string& host) {
  return {.path = "/", .headers = {{"host", host}}, .query = {}, .cookies = {}};
}

}  // namespace

TEST_CASE("without a token only names of this machine are served") {
  for (const char* host : {"localhost", "localhost:8377", "127.0.0.1:1", "[::1]:8377", "[::1]"}) {
    CHECK(status_of(request_of(host), "") == 200);
  }
  for (const char* host : {"evil.example", "evil.example:8377", "127.0.0.1.evil.example",
                           "localhost.evil.example:80", "10.0.0.1:8377"}) {
    CHECK(status_of(request_of(host), "") == 403);
  }
}

TEST_CASE("with a token nobody reads without it") {
  auto request = request_of("far.example:8377");
  CHECK(status_of(request, kToken) == 401);
  request.headers["authorization"] = "Bearer " + kToken;
  CHECK(status_of(request, kToken) == 200);
  request.headers["authorization"] = "Bearer " + kToken + "x";
  CHECK(status_of(request, kToken) == 401);
  request.headers["authorization"] = "Bearer ";
  CHECK(status_of(request, kToken) == 401);
  request.headers.erase("authorization");
  request.cookies["farstep_token"] = kToken;
  CHECK(status_of(request, kToken) == 200);
  request.cookies["farstep_token"] = kToken.substr(1);
  CHECK(status_of(request, kToken) == 401);
}

TEST_CASE("the page's address with the token sets a cookie and leads to the one without") {
  auto request = request_of("far.example");
  request.query["token"] = kToken;
  const auto answer = refusal(request, kToken);
  REQUIRE(answer);
  CHECK(answer->status == 303);
  CHECK(answer->headers.front() == std::pair<std::string, std::string>("Location", "./"));
  CHECK_THAT(answer->headers.back().second,
             Catch::Contains("farstep_token=" + kToken) && Catch::Contains("HttpOnly") &&
                 Catch::Contains("SameSite=Strict") && !Catch::Contains("Path"));
  request.path = "/metrics";
  CHECK(status_of(request, kToken) == 401);
  request = request_of("far.example");
  request.query["token"] = "another-token-0123";
  CHECK(status_of(request, kToken) == 401);
}

TEST_CASE("a token is read from a file and weak or odd ones are refused") {
  const TemporaryFolder folder;
  const auto file = folder / "token";
  write_file(file, kToken + "\n");
  CHECK(read_token(file) == kToken);
  for (const std::string text : {"", "short", "with space 0123456789", "semi;colon0123456789"}) {
    write_file(file, text);
    CHECK_THROWS_AS(read_token(file), ConfigError);
  }
  CHECK_THROWS_AS(read_token(folder / "absent"), DataError);
}

}  // namespace farstep
