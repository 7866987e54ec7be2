// A read-only HTTP server, by GNU libmicrohttpd: answers to GET, and streams of server-sent events.
//
// One thread serves all connections, so that a slow one costs nobody else anything. Each has a
// limit of memory, and a deadline for its request; each answer closes its connection. What is wrong
// with a request is said in the answer: too large (414, 431), too slow (408), malformed (400), not
// a read (405). Of too many connections one that has not asked ends, or else the oldest stream: so
// whoever holds connections locks nobody out.
//
// publish() and tick() may be called by any thread. The handler is called by the server's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "wan/sockets/tcp.h"

namespace farstep {

struct HttpRequest {
  std::string path;                            // unescaped, without the query
  std::map<std::string, std::string> headers;  // names in lower case
  std::map<std::string, std::string> query, cookies;

  // Returns a value; empty if there is none.
  static std::string value(const std::map<std::string, std::string>& values,
                           const std::string& name);
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  // The body is the first event of a stream; the others come by publish().
  bool is_stream = false;
};

// Returns `data` as a server-sent event. It must not contain a line end, as JSON does not.
std::string sent_event(const std::string& name, const std::string& data);

struct HttpLimits {
  double request_seconds = 10;  // from the connection to the end of the request's header
  double idle_seconds = 20;     // without a byte taken of an answer
  unsigned connections = 64;    // at once
};

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Listens at once; port 0 takes a free one. Throws what throw_cannot_listen() does. The handler
  // may throw: that is answered with 500.
  HttpServer(const wan::SocketAddress& address, Handler handler, const HttpLimits& limits = {});
  // Ends all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  wan::SocketAddress address() const;
  // Sends an event to every stream. A client that has not taken the one before gets the newest
  // only.
  void publish(const std::string& event);
  // Ends requests whose time is up; to be called about once a second.
  void tick();

 private:
  class Daemon;
  const std::unique_ptr<Daemon> daemon_;
};

}  // namespace farstep
