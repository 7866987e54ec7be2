#include "trainer/watch/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "wan/sockets/tcp.h"

namespace farstep {

namespace {

constexpr std::size_t kLeastToken = 16, kMostToken = 200;
constexpr const char* kCookie = "farstep_token";

// Takes the same time wherever the texts differ.
bool are_equal(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

// An IP address cannot be made to lead elsewhere, as a name can.
bool names_this_machine(const std::string& host) {
  if (host.empty()) return true;
  try {
    const auto name = wan::parse_host_maybe_port("host", host).host;
    if (name == "localhost") return true;
    return wan::usual_ip(name) && wan::SocketAddress(name, 0).is_loopback();
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace

std::string read_token(const std::filesystem::path& file) {
  auto token = read_file(file);
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back()))) token.pop_back();
  const bool is_plain = std::ranges::all_of(
      token, [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; });
  if (!is_plain || token.size() < kLeastToken || token.size() > kMostToken) {
    throw ConfigError(fmt::format(
        "{}: is no token: it must be {} to {} letters, digits, '-' and '_'; `openssl rand -hex 16` "
        "prints one",
        file.string(), kLeastToken, kMostToken));
  }
  return token;
}

std::optional<HttpResponse> refusal(const HttpRequest& request, const std::string& token) {
  if (token.empty()) {
    if (names_this_machine(HttpRequest::value(request.headers, "host"))) return std::nullopt;
    return HttpResponse{.status = 403,
                        .body =
                            "Without a token this server answers to localhost and loopback "
                            "addresses, such as 127.0.0.1 and [::1], only.\n"};
  }
  const bool has_token =
      are_equal(HttpRequest::value(request.headers, "authorization"), "Bearer " + token) ||
      are_equal(HttpRequest::value(request.cookies, kCookie), token);
  if (has_token) return std::nullopt;
  if (request.path == "/" && are_equal(HttpRequest::value(request.query, "token"), token)) {
    // The browser shows and keeps an address without the token then. Behind a proxy it may be a
    // folder of another one's: so the redirect is relative, and the cookie for the page's folder.
    return HttpResponse{.status = 303,
                        .body = "",
                        .headers = {{"Location", "./"},
                                    {"Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict",
                                                               kCookie, token)}}};
  }
  return HttpResponse{.status = 401,
                      .body =
                          "This page needs its token: open /?token=TOKEN once, or send "
                          "\"Authorization: Bearer TOKEN\".\n",
                      .headers = {{"WWW-Authenticate", "Bearer"}}};
}

}  // namespace farstep
