#include "trainer/watch/watch_service.h"

#include <fstream>
#include <map>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/watch/http_client.h"
#include "tests/trainer/watch/watched_run.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/report/report.h"

namespace farstep {

namespace {

wan::SocketAddress address_of(const WatchService& page) {
  const auto url = page.url();
  return {"127.0.0.1", std::stoi(url.substr(url.rfind(':') + 1))};
}

// Waits, by the stream, until the page has read as many records as lead to this state.
Json wait_for_state(const wan::SocketAddress& server, const std::string& enough) {
  const auto stream = send_to(server, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  receive_from(stream, enough);
  return Json::parse(body_of(get(server, "/api/status")));
}

const WatchOptions kAnyPort{.listen = "127.0.0.1:0", .token_file = {}, .on_alarm = {}};

}  // namespace

TEST_CASE("the page shows a run that grows and its figures are those of the report") {
  const TemporaryFolder folder;
  const TemporaryFolder whole;
  const auto run = watched_run();
  run.write(whole.path());
  const RealClock clock;
  const WatchService page({folder.path()}, kAnyPort, clock);
  const auto server = address_of(page);
  auto state = Json::parse(body_of(get(server, "/api/status")));
  CHECK(state["run"].is_null());
  CHECK_THAT(get(server, "/metrics"), Catch::StartsWith("HTTP/1.1 503 "));
  const auto file = folder / "node1" / "events.jsonl";
  const auto text = read_file(whole / "node1" / "events.jsonl");
  std::filesystem::create_directories(file.parent_path());
  write_file(file, text.substr(0, text.size() / 2));
  state = wait_for_state(server, "\"run\":\"synthetic\"");
  CHECK(state["sites"].size() == 1);
  CHECK(state["is_over"] == false);
  run.write(folder.path());  // the same bytes and the rest
  state = wait_for_state(server, "\"is_over\":true");
  CHECK(state["sites"].size() == 2);
  CHECK(Json::parse(body_of(get(server, "/api/report"))) ==
        report_json(build_report(whole.path())));
  CHECK_THAT(body_of(get(server, "/metrics")), Catch::Contains("farstep_rounds_done 4\n"));
}

TEST_CASE("a page at a site with a wrong clock tells the coordinator's time") {
  const TemporaryFolder folder;
  auto records = watched_run().records(0, 300);  // its clock is 300 s behind
  records.resize(3);                             // it trains
  write_events(folder / "node1" / "events.jsonl", records);
  const double last = records.back().time;
  const FakeClock clock(last + 5);
  const WatchService page({folder.path()}, kAnyPort, clock);
  const auto server = address_of(page);
  const auto state = wait_for_state(server, "\"run\":\"synthetic\"");
  CHECK(state["now"].get<double>() - last == Approx(305).margin(1e-3));
  CHECK(state["sites"][0]["last_seen"].get<double>() - last == Approx(300).margin(1e-3));
  CHECK(state["alarms"].empty());
  // At the coordinator that site's clock changes nothing, though it be the only one yet.
  const WatchService hosted({folder.path()}, kAnyPort, clock, PagePlace::kCoordinator);
  const auto there = wait_for_state(address_of(hosted), "\"run\":\"synthetic\"");
  CHECK(there["now"].get<double>() - last == Approx(5).margin(1e-3));
}

TEST_CASE("every part of the page is served and takes nothing from elsewhere") {
  const TemporaryFolder folder;
  watched_run().write(folder.path());
  const RealClock clock;
  const WatchService page({folder.path()}, kAnyPort, clock);
  const auto server = address_of(page);
  wait_for_state(server, "\"run\":\"synthetic\"");
  for (const char* path :
       {"/", "/watch.css", "/watch.js", "/timeline.js", "/charts.js", "/icon.svg", "/api/status",
        "/api/charts", "/api/settings", "/api/timeline", "/api/timeline?seconds=60",
        "/api/timeline?seconds=all"}) {
    INFO(path);
    const auto answer = get(server, path);
    CHECK_THAT(answer, Catch::StartsWith("HTTP/1.1 200 "));
    // But for the name of SVG's elements.
    for (const char* forbidden : {"https:", "http://", "@import", "url(", "eval("}) {
      INFO(forbidden);
      auto body = body_of(answer);
      const std::string svg = "http://www.w3.org/2000/svg";
      for (auto at = body.find(svg); at != body.npos; at = body.find(svg))
        body.erase(at, svg.size());
      const std::string clip = "url(#plot)";
      for (auto at = body.find(clip); at != body.npos; at = body.find(clip))
        body.erase(at, clip.size());
      CHECK(body.find(forbidden) == body.npos);
    }
  }
  CHECK_THAT(get(server, "/else"), Catch::StartsWith("HTTP/1.1 404 "));
  CHECK_THAT(get(server, "/../etc/passwd"), Catch::StartsWith("HTTP/1.1 404 "));
  for (const char* seconds : {"9", "86401", "1e3", "-60", "60x", "99999999999999999999"}) {
    CHECK_THAT(get(server, std::string("/api/timeline?seconds=") + seconds),
               Catch::StartsWith("HTTP/1.1 400 "));
  }
}

TEST_CASE("another host name and a reader without the token get nothing") {
  const TemporaryFolder folder;
  watched_run().write(folder.path());
  const RealClock clock;
  {
    const WatchService page({folder.path()}, kAnyPort, clock);
    CHECK_THAT(ask(address_of(page), "GET /api/status HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
               Catch::StartsWith("HTTP/1.1 403 "));
  }
  write_file(folder / "token", "0123456789abcdef\n");
  auto options = kAnyPort;
  options.token_file = (folder / "token").string();
  const WatchService page({folder.path()}, options, clock);
  const auto server = address_of(page);
  for (const char* path : {"/", "/watch.js", "/api/status", "/api/events", "/metrics"}) {
    CHECK_THAT(get(server, path), Catch::StartsWith("HTTP/1.1 401 "));
    CHECK_THAT(get(server, path, "Authorization: Bearer 0123456789abcdee\r\n"),
               Catch::StartsWith("HTTP/1.1 401 "));
  }
  CHECK_THAT(get(server, "/", "Authorization: Bearer 0123456789abcdef\r\n"),
             Catch::StartsWith("HTTP/1.1 200 "));
  CHECK_THAT(get(server, "/", "Cookie: farstep_token=0123456789abcdef\r\n"),
             Catch::StartsWith("HTTP/1.1 200 "));
  CHECK_THAT(get(server, "/?token=0123456789abcdef"), Catch::StartsWith("HTTP/1.1 303 "));
}

TEST_CASE("an address that others reach needs a token and a wrong one is refused") {
  const RealClock clock;
  const auto with = [&](const std::string& listen) {
    auto options = kAnyPort;
    options.listen = listen;
    const WatchService page({"absent"}, options, clock);
  };
  CHECK_THROWS_WITH(with("0.0.0.0:0"), Catch::Contains("--token-file"));
  CHECK_THROWS_AS(with("0.0.0.0:0"), ConfigError);
  for (const char* wrong : {"", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1"}) {
    CHECK_THROWS_WITH(with(wrong), Catch::StartsWith("--listen: "));
  }
  CHECK_NOTHROW(with("localhost:0"));
  CHECK_NOTHROW(with("[::1]:0"));
}

TEST_CASE("a damaged file is told on the page beside the other site until it can be read") {
  const TemporaryFolder folder;
  watched_run().write(folder.path());
  const auto file = folder / "node2" / "events.jsonl";
  const auto text = read_file(file);
  write_file(file, "{}\n");
  const RealClock clock;
  const WatchService page({folder.path()}, kAnyPort, clock);
  const auto server = address_of(page);
  auto state = wait_for_state(server, "not an event record");
  CHECK(state["error"].is_null());
  REQUIRE(state["unreadable"].size() == 1);
  CHECK(state["unreadable"][0]["site"] == "node2");
  CHECK(state["unreadable"][0]["file"] == file.string());
  CHECK_THAT(state["unreadable"][0]["reason"].get<std::string>(), Catch::Contains(file.string()));
  REQUIRE(state["sites"].size() == 1);
  CHECK(state["sites"][0]["site"] == "node1");
  auto metrics = body_of(get(server, "/metrics"));
  CHECK_THAT(metrics, Catch::Contains("farstep_unreadable_files 1\n"));
  CHECK_THAT(metrics, Catch::Contains("farstep_site_rounds_done{site=\"node1\"} 4\n"));
  write_file(file, text);
  state = wait_for_state(server, "\"unreadable\":[]");
  CHECK(state["sites"].size() == 2);
  CHECK(Json::parse(body_of(get(server, "/api/report"))) ==
        report_json(build_report(folder.path())));
  CHECK_THAT(body_of(get(server, "/metrics")), Catch::Contains("farstep_unreadable_files 0\n"));
}

TEST_CASE("a page that can read no file says why and reads the run as soon as it can") {
  const TemporaryFolder folder;
  watched_run().write(folder.path());
  std::map<std::filesystem::path, std::string> texts;
  for (const char* site : {"node1", "node2"}) {
    const auto file = folder / site / "events.jsonl";
    texts[file] = read_file(file);
    write_file(file, "{}\n");
  }
  const RealClock clock;
  const WatchService page({folder.path()}, kAnyPort, clock);
  const auto server = address_of(page);
  const auto state = wait_for_state(server, "not an event record");
  CHECK(state["run"].is_null());
  CHECK(state["unreadable"].size() == 2);
  const auto metrics = get(server, "/metrics");
  CHECK_THAT(metrics, Catch::StartsWith("HTTP/1.1 503 "));
  for (const auto& [file, text] : texts) {
    CHECK_THAT(state["error"].get<std::string>(), Catch::Contains(file.string()));
    CHECK_THAT(metrics, Catch::Contains(file.string()));
    write_file(file, text);
  }
  CHECK(wait_for_state(server, "\"unreadable\":[]")["sites"].size() == 2);
}

}  // namespace farstep
