#include "trainer/watch/http_server.h"

#include <atomic>
#include <thread>

#include "tests/support/catch.h"
#include "tests/trainer/watch/http_client.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

const wan::SocketAddress kAnyPort("127.0.0.1", 0);

HttpResponse echo(const HttpRequest& request) {
  if (request.path == "/stream") {
    return {.type = "text/event-stream", .body = sent_event("a", "0"), .is_stream = true};
  }
  if (request.path == "/fault") throw std::runtime_error("out of luck");
  return {.body = request.path + "|" + HttpRequest::value(request.query, "q") + "|" +
                  HttpRequest::value(request.headers, "x-one") + "|" +
                  HttpRequest::value(request.cookies, "c")};
}

}  // namespace

TEST_CASE("a request comes with its path and query and headers and cookies") {
  HttpServer server(kAnyPort, echo);
  CHECK(server.address().port() > 0);
  const auto answer =
      get(server.address(), "/a%20b?q=1%2B1&r", "X-One: yes\r\nCookie: c=biscuit\r\n");
  CHECK_THAT(answer, Catch::StartsWith("HTTP/1.1 200 "));
  CHECK(body_of(answer) == "/a b|1+1|yes|biscuit");
  CHECK_THAT(answer, Catch::Contains("Content-Security-Policy: default-src 'none'"));
  CHECK_THAT(answer, Catch::Contains("Connection: close"));
}

TEST_CASE("each wrong request gets an answer that says what is wrong") {
  HttpServer server(kAnyPort, echo);
  const auto status_of = [&](const std::string& text) {
    const auto answer = ask(server.address(), text);
    return answer.substr(0, answer.find("\r\n")).substr(0, 12);
  };
  const std::string host = "Host: localhost\r\n";
  CHECK(status_of("POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc") == "HTTP/1.1 405");
  CHECK(status_of("DELETE / HTTP/1.1\r\n" + host + "\r\n") == "HTTP/1.1 405");
  CHECK(status_of("POST / HTTP/1.1\r\n" + host + "Content-Length: 10000000\r\n\r\n" +
                  std::string(10'000'000, 'x')) == "HTTP/1.1 405");
  CHECK(status_of("GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n" + host + "\r\n") ==
        "HTTP/1.1 414");
  CHECK(status_of("GET / HTTP/1.1\r\n" + host + "A: " + std::string(100'000, 'a') + "\r\n\r\n") ==
        "HTTP/1.1 431");
  std::string many = "GET / HTTP/1.1\r\n" + host;
  for (int i = 0; i < 5000; ++i) many += "H" + std::to_string(i) + ": 1\r\n";
  CHECK(status_of(many + "\r\n") == "HTTP/1.1 431");
  CHECK(status_of("GET / HTTP/1.1\r\n\r\n") == "HTTP/1.1 400");  // without a host
  CHECK(status_of("GET / HTTP/1.1\r\n" + host + "no colon\r\n\r\n") == "HTTP/1.1 400");
  CHECK(status_of("GET / HTTP/9.9\r\n" + host + "\r\n") == "HTTP/1.1 505");
  CHECK(status_of("GET /fault HTTP/1.1\r\n" + host + "\r\n") == "HTTP/1.1 500");
  // And the server serves on.
  CHECK(body_of(get(server.address(), "/x")) == "/x|||");
}

TEST_CASE("a request that comes too slowly ends with an answer") {
  HttpServer server(kAnyPort, echo, {.request_seconds = 0});
  const auto slow = send_to(server.address(), "GET / HT");
  std::atomic<bool> is_over = false;
  // tick() may come before the server has accepted the connection, so it comes again.
  std::thread ticker([&] {
    while (!is_over) {
      server.tick();
      std::this_thread::yield();
    }
  });
  const auto answer = receive_from(slow, "\n\n\n");
  is_over = true;
  ticker.join();
  CHECK_THAT(answer, Catch::StartsWith("HTTP/1.1 408 "));
  CHECK(body_of(answer) == "The request came too slowly.\n");
}

TEST_CASE("slow connections up to the limit keep nobody from an answer") {
  HttpServer server(kAnyPort, echo, {.connections = 64});
  std::vector<wan::Socket> slow;
  for (int i = 0; i < 60; ++i) slow.push_back(send_to(server.address(), "GET / HTTP/1.1\r\nA"));
  CHECK(body_of(get(server.address(), "/x")) == "/x|||");
}

TEST_CASE("every reader of a stream gets the events and a late one the newest") {
  HttpServer server(kAnyPort, echo);
  const std::string request = "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::vector<wan::Socket> readers;
  for (int i = 0; i < 5; ++i) readers.push_back(send_to(server.address(), request));
  for (const auto& reader : readers) {
    CHECK_THAT(receive_from(reader, "data: 0\n\n"), Catch::Contains("text/event-stream"));
  }
  for (int event = 1; event <= 300; ++event) {
    server.publish(sent_event("a", std::to_string(event)));
  }
  for (const auto& reader : readers) {
    CHECK_THAT(receive_from(reader, "data: 300\n\n"), Catch::Contains("data: 300\n\n"));
  }
  // Readers that go away do not disturb the others.
  readers.erase(readers.begin(), readers.begin() + 3);
  for (int event = 301; event <= 320; ++event) {
    server.publish(sent_event("a", std::to_string(event)));
  }
  for (const auto& reader : readers) {
    CHECK_THAT(receive_from(reader, "data: 320\n\n"), Catch::Contains("data: 320\n\n"));
  }
}

// Those who held as many connections as there may be kept all others out for as long as they liked.
TEST_CASE("connections beyond the limit take the place of one that has not asked, or of a stream") {
  HttpServer server(kAnyPort, echo, {.connections = 8});
  const std::string stream = "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::vector<wan::Socket> streams;
  for (int i = 0; i < 8; ++i) {
    streams.push_back(send_to(server.address(), stream));
    receive_from(streams.back(), "data: 0\n\n");
  }
  // Streams of others, then connections without a request, and each time an honest reader.
  for (int i = 0; i < 3; ++i) CHECK(body_of(get(server.address(), "/x")) == "/x|||");
  std::vector<wan::Socket> silent;
  for (int i = 0; i < 40; ++i) {
    silent.push_back(send_to(server.address(), "GET / HTTP/1.1\r\nA"));
    CHECK(body_of(get(server.address(), "/x")) == "/x|||");
  }
  // The oldest streams have ended, the newest one goes on.
  receive_from(streams.front(), "never");
  server.publish(sent_event("a", "1"));
  CHECK_THAT(receive_from(streams.back(), "data: 1\n\n"), Catch::Contains("data: 1\n\n"));
}

TEST_CASE("a server ends also while streams wait for news") {
  std::vector<wan::Socket> readers;
  {
    HttpServer server(kAnyPort, echo);
    const std::string request = "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (int i = 0; i < 8; ++i) readers.push_back(send_to(server.address(), request));
    for (const auto& reader : readers) receive_from(reader, "data: 0\n\n");
  }
  // receive_from() throws unless the connection has ended.
  for (const auto& reader : readers) receive_from(reader, "never");
}

TEST_CASE("an address that is taken is an error that names it") {
  const HttpServer first(kAnyPort, echo);
  CHECK_THROWS_WITH(HttpServer(first.address(), echo),
                    Catch::Contains("the page: cannot listen on " + first.address().text()));
}

}  // namespace farstep
