// libmicrohttpd reads and checks the requests. It has no deadline for a whole request, which a
// client could send byte by byte, so tick() ends those. At its limit of connections it lets
// newcomers wait, so they get the place of another before. A stream without news is suspended, and
// the next event resumes it.
#include "trainer/watch/http_server.h"

#include <microhttpd.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <tuple>

#include "trainer/base/error.h"
#include "wan/sockets/local_address.h"

namespace farstep {

namespace {

constexpr std::size_t kConnectionBytes = 16 * 1024;  // for the request's header
constexpr std::size_t kStreamBlock = 4096;
// Connections that are about to end, beside those of the limit: more newcomers than these wait.
constexpr unsigned kEnding = 16;
constexpr std::string_view kTooSlow =
    "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    "Content-Length: 29\r\n\r\nThe request came too slowly.\n";

// The page takes nothing from elsewhere, and nobody else may show it.
constexpr std::array<std::pair<const char*, const char*>, 5> kHeaders = {
    {{"Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
      "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
     {"X-Content-Type-Options", "nosniff"},
     {"Referrer-Policy", "no-referrer"},
     {"Cache-Control", "no-store"},
     {"Connection", "close"}}};

// Decodes %XX in place, unless a zero byte would cut the text and so make it another path.
std::size_t unescape(void* /*context*/, MHD_Connection* /*connection*/, char* text) {
  return std::strstr(text, "%00") == nullptr ? MHD_http_unescape(text) : std::strlen(text);
}

MHD_Result collect(void* into, MHD_ValueKind kind, const char* name, const char* value) {
  std::string key = name;
  if (kind == MHD_HEADER_KIND) {
    std::ranges::transform(key, key.begin(), [](unsigned char c) { return std::tolower(c); });
  }
  (*static_cast<std::map<std::string, std::string>*>(into))[key] = value != nullptr ? value : "";
  return MHD_YES;
}

}  // namespace

std::string HttpRequest::value(const std::map<std::string, std::string>& values,
                               const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

std::string sent_event(const std::string& name, const std::string& data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, data);
}

class HttpServer::Daemon {
  using SteadyClock = std::chrono::steady_clock;

 public:
  Daemon(const wan::SocketAddress& address, Handler handler, const HttpLimits& limits)
      : handler_(std::move(handler)), limits_(limits) {
    const auto listening = listen_on(address);
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    if (address.family() == AF_INET6) flags |= MHD_USE_IPv6;
    daemon_ = MHD_start_daemon(
        flags, 0, nullptr, nullptr, &Daemon::on_request, this,       //
        MHD_OPTION_LISTEN_SOCKET, ::dup(listening.fd()),             // which the daemon closes
        MHD_OPTION_CONNECTION_LIMIT, limits_.connections + kEnding,  //
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes,        //
        MHD_OPTION_CONNECTION_TIMEOUT, static_cast<unsigned>(limits_.idle_seconds),
        MHD_OPTION_STRICT_FOR_CLIENT, 1,                   //
        MHD_OPTION_UNESCAPE_CALLBACK, &unescape, nullptr,  //
        MHD_OPTION_NOTIFY_CONNECTION, &Daemon::on_connection, this, MHD_OPTION_END);
    if (daemon_ == nullptr) throw InternalError("the HTTP server does not start");
  }

  // A suspended connection would never end.
  ~Daemon() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      for (auto* stream : streams_) stream->wake();
    }
    MHD_stop_daemon(daemon_);
  }

  wan::SocketAddress address() const {
    const auto* info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_LISTEN_FD);
    return *wan::SocketAddress::local_of(info->listen_fd);
  }

  void publish(const std::string& event) {
    const std::lock_guard lock(mutex_);
    for (auto* stream : streams_) {
      stream->newest = event;
      stream->wake();
    }
  }

  // The socket is not closed meanwhile: on_connection() needs the mutex before that.
  void tick() {
    const std::lock_guard lock(mutex_);
    const auto now = SteadyClock::now();
    for (auto& [connection, visitor] : visitors_) {
      const std::chrono::duration<double> waited = now - visitor.since;
      if (visitor.has_asked || waited.count() < limits_.request_seconds) continue;
      visitor.has_asked = true;
      ::send(visitor.fd, kTooSlow.data(), kTooSlow.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      ::shutdown(visitor.fd, SHUT_RDWR);
    }
  }

 private:
  struct Stream {
    Daemon* daemon;
    MHD_Connection* connection;
    std::string sending, newest;  // guarded by the daemon's mutex, as all of it
    std::size_t sent = 0;
    bool is_suspended = false;
    bool is_ending = false;

    void wake() {
      if (!is_suspended) return;
      is_suspended = false;
      MHD_resume_connection(connection);
    }
  };

  struct Visitor {
    int fd;
    SteadyClock::time_point since;
    bool has_asked = false;  // its request is whole, or its time is up
    Stream* stream = nullptr;
    bool is_ending = false;
  };

  static wan::Socket listen_on(const wan::SocketAddress& address) {
    try {
      return wan::listen_tcp(address);
    } catch (const wan::TcpError& error) {
      wan::throw_cannot_listen("the page", address, error.error());
    }
  }

  static void on_connection(void* self, MHD_Connection* connection, void** /*context*/,
                            MHD_ConnectionNotificationCode what) {
    auto& daemon = *static_cast<Daemon*>(self);
    const std::lock_guard lock(daemon.mutex_);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      daemon.visitors_.erase(connection);
      return;
    }
    daemon.make_room();
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    daemon.visitors_[connection] = {info->connect_fd, SteadyClock::now()};
  }

  // Ends a connection if there are as many as may be. The mutex is held.
  void make_room() {
    Visitor* last = nullptr;
    std::size_t staying = 0;
    // A stream's reader comes again by itself, and an answer under way is near its end.
    const auto worth = [](const Visitor& visitor) {
      return std::tuple(visitor.has_asked, visitor.stream == nullptr, visitor.since);
    };
    for (auto& [connection, visitor] : visitors_) {
      if (visitor.is_ending) continue;
      ++staying;
      if (last == nullptr || worth(visitor) < worth(*last)) last = &visitor;
    }
    if (staying < limits_.connections) return;
    last->is_ending = last->has_asked = true;
    ::shutdown(last->fd, SHUT_RDWR);
    if (last->stream == nullptr) return;
    last->stream->is_ending = true;
    last->stream->wake();
  }

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path,
                               const char* method, const char* /*version*/, const char* /*upload*/,
                               std::size_t* /*upload_bytes*/, void** /*context*/) {
    return static_cast<Daemon*>(self)->answer(connection, path, method);
  }

  MHD_Result answer(MHD_Connection* connection, const char* path, const std::string& method) {
    {
      const std::lock_guard lock(mutex_);
      const auto visitor = visitors_.find(connection);
      if (visitor != visitors_.end()) visitor->second.has_asked = true;
    }
    const auto response = respond(connection, path, method);
    auto* reply = response.is_stream
                      ? stream_reply(connection, response.body)
                      : MHD_create_response_from_buffer(response.body.size(),
                                                        const_cast<char*>(response.body.data()),
                                                        MHD_RESPMEM_MUST_COPY);
    if (reply == nullptr) return MHD_NO;
    MHD_add_response_header(reply, "Content-Type", response.type.c_str());
    for (const auto& [name, value] : kHeaders) MHD_add_response_header(reply, name, value);
    for (const auto& [name, value] : response.headers) {
      MHD_add_response_header(reply, name.c_str(), value.c_str());
    }
    const auto queued =
        MHD_queue_response(connection, static_cast<unsigned>(response.status), reply);
    MHD_destroy_response(reply);
    return queued;
  }

  HttpResponse respond(MHD_Connection* connection, const char* path, const std::string& method) {
    if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
      return {.status = MHD_HTTP_METHOD_NOT_ALLOWED,
              .body = "This server is read-only: it answers GET and HEAD.\n",
              .headers = {{"Allow", "GET, HEAD"}}};
    }
    HttpRequest request{.path = path, .headers = {}, .query = {}, .cookies = {}};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, &collect, &request.headers);
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &collect, &request.query);
    MHD_get_connection_values(connection, MHD_COOKIE_KIND, &collect, &request.cookies);
    // An exception must not pass through the library's C code.
    try {
      auto response = handler_(request);
      // A stream would have no end, and HEAD wants no body.
      if (method == MHD_HTTP_METHOD_HEAD) response.is_stream = false;
      return response;
    } catch (const std::exception& error) {
      spdlog::error("watch: {}: {}", request.path, error.what());
      return {.status = MHD_HTTP_INTERNAL_SERVER_ERROR,
              .body = fmt::format("This request failed: {}\n", error.what())};
    }
  }

  MHD_Response* stream_reply(MHD_Connection* connection, const std::string& first) {
    auto* stream = new Stream{this, connection, first, "", 0, false};
    {
      const std::lock_guard lock(mutex_);
      streams_.insert(stream);
      if (const auto found = visitors_.find(connection); found != visitors_.end()) {
        found->second.stream = stream;
        stream->is_ending = found->second.is_ending;
      }
    }
    auto* reply = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kStreamBlock,
                                                    &Daemon::on_read, stream, &Daemon::on_free);
    if (reply == nullptr) on_free(stream);
    return reply;
  }

  static ssize_t on_read(void* state, uint64_t /*position*/, char* into, std::size_t most) {
    auto& stream = *static_cast<Stream*>(state);
    const std::lock_guard lock(stream.daemon->mutex_);
    if (stream.daemon->is_ending_ || stream.is_ending) return MHD_CONTENT_READER_END_OF_STREAM;
    if (stream.sent == stream.sending.size()) {
      stream.sending = std::exchange(stream.newest, "");
      stream.sent = 0;
    }
    const auto bytes = std::min(most, stream.sending.size() - stream.sent);
    if (bytes == 0) {
      stream.is_suspended = true;
      MHD_suspend_connection(stream.connection);
      return 0;
    }
    std::memcpy(into, stream.sending.data() + stream.sent, bytes);
    stream.sent += bytes;
    return static_cast<ssize_t>(bytes);
  }

  static void on_free(void* state) {
    auto* stream = static_cast<Stream*>(state);
    {
      auto& daemon = *stream->daemon;
      const std::lock_guard lock(daemon.mutex_);
      daemon.streams_.erase(stream);
      const auto found = daemon.visitors_.find(stream->connection);
      if (found != daemon.visitors_.end() && found->second.stream == stream) {
        found->second.stream = nullptr;
      }
    }
    delete stream;
  }

  const Handler handler_;
  const HttpLimits limits_;
  std::mutex mutex_;
  std::map<MHD_Connection*, Visitor> visitors_;  // guarded by mutex_, as the next two
  std::set<Stream*> streams_;
  bool is_ending_ = false;
  MHD_Daemon* daemon_ = nullptr;
};

HttpServer::HttpServer(const wan::SocketAddress& address, Handler handler, const HttpLimits& limits)
    : daemon_(std::make_unique<Daemon>(address, std::move(handler), limits)) {}

HttpServer::~HttpServer() = default;

wan::SocketAddress HttpServer::address() const {
  return daemon_->address();
}

void HttpServer::publish(const std::string& event) {
  daemon_->publish(event);
}

void HttpServer::tick() {
  daemon_->tick();
}

}  // namespace farstep
