// Strict where texts are guessed at elsewhere: a name that ends in a number, 10.1 for 10.0.0.1, or
// ::1:7440 would each be read as something that its writer did not mean.
#include "wan/sockets/host_port.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "trainer/base/error.h"
#include "trainer/base/system/printable.h"

namespace farstep::wan {

namespace {

constexpr std::string_view kScheme = "tcp://";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr int kHighestPort = 65'535;
constexpr std::size_t kLongestName = 253, kLongestLabel = 63;  // RFC 1035, section 2.3.4
constexpr std::size_t kMostQuoted = 200;

// What a text is part of, for messages.
struct Source {
  const std::string& field;
  std::string_view text;

  [[noreturn]] void refuse(const std::string& what) const {
    throw ConfigError(fmt::format("{}: \"{}\" {}", field, printable(text, kMostQuoted), what));
  }
};

bool has_only(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_number(std::string_view text) {
  return !text.empty() && has_only(text, kDigits);
}

std::optional<int> port_number(std::string_view text) {
  int port = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  const bool is_port = is_number(text) && error == std::errc() && port <= kHighestPort;
  return is_port ? std::optional(port) : std::nullopt;
}

bool is_interface_name(std::string_view text) {
  const auto is_outside = [](unsigned char c) {
    return c <= ' ' || c > '~' || c == '/' || c == '%';
  };
  return !text.empty() && text.size() < IF_NAMESIZE && std::ranges::none_of(text, is_outside);
}

struct Ip6 {
  in6_addr address;
  std::string_view interface;
  bool is_link_local() const { return IN6_IS_ADDR_LINKLOCAL(&address); }
};

std::optional<Ip6> ip6_in(std::string_view text) {
  const auto percent = text.find('%');
  Ip6 ip{.address = {}, .interface = {}};
  if (::inet_pton(AF_INET6, std::string(text.substr(0, percent)).c_str(), &ip.address) != 1) {
    return std::nullopt;
  }
  if (percent == std::string_view::npos) return ip;
  ip.interface = text.substr(percent + 1);
  const bool is_whole = ip.is_link_local() && is_interface_name(ip.interface);
  return is_whole ? std::optional(ip) : std::nullopt;
}

void require_name(const Source& source, std::string_view name) {
  if (name.empty()) source.refuse("has no host before the port");
  if (std::ranges::any_of(name, [](unsigned char c) { return c > '~'; })) {
    source.refuse(
        "has letters that are not ASCII in its host: write the name as the name service has it, "
        "with xn-- (`idn2 NAME` prints it)");
  }
  // A dot at the end says that nothing is to be added to the name.
  const auto parts = name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
  std::string_view label;
  for (std::size_t begin = 0; begin <= parts.size(); begin += label.size() + 1) {
    label = parts.substr(begin, parts.find('.', begin) - begin);
    const auto allowed = std::string(kLetters).append(kDigits).append("-_");
    if (label.empty() || label.size() > kLongestLabel || label.starts_with('-') ||
        !has_only(label, allowed) || parts.size() > kLongestName) {
      source.refuse(
          "has no host: that is an IP address, or a name of letters, digits, - and _ with dots "
          "between its parts");
    }
  }
  // So is that of no name: programs read 10.1 as 10.0.0.1.
  if (is_number(label)) {
    source.refuse("has no host: an IPv4 address is four numbers from 0 to 255, such as 10.0.0.5");
  }
}

// `in_brackets`: only an IPv6 address is there.
std::string host_in(const Source& source, std::string_view text, bool in_brackets) {
  if (text == kAnyHost && !in_brackets) return std::string(text);
  if (auto ip = usual_ip(text); ip && (!in_brackets || text.find(':') != text.npos)) {
    const auto ip6 = ip6_in(*ip);
    if (ip6 && ip6->is_link_local() && ip6->interface.empty()) {
      source.refuse(fmt::format(
          "is link-local: add the interface of this machine that leads there, such as {}%eth0",
          *ip));
    }
    return *std::move(ip);
  }
  if (in_brackets || text.find_first_of(":%") != text.npos) {
    source.refuse(
        "has no IPv6 address where one is to be; that looks like 2001:db8::7, or fe80::7%eth0 if "
        "it is link-local");
  }
  require_name(source, text);
  return std::string(text);
}

struct Parts {
  std::string host;
  std::optional<std::string_view> port;
};

Parts parts_in_brackets(const Source& source, std::string_view text) {
  const auto end = text.find(']');
  const auto rest = end == text.npos ? std::string_view() : text.substr(end + 1);
  if (end == text.npos || (!rest.empty() && !rest.starts_with(':'))) {
    source.refuse("must be [ADDRESS]:PORT, such as [2001:db8::7]:7400");
  }
  Parts parts{.host = host_in(source, text.substr(1, end - 1), true), .port = {}};
  if (!rest.empty()) parts.port = rest.substr(1);
  return parts;
}

// Several colons without brackets: an IPv6 address, unless its end could be a port.
Parts parts_of_ip6(const Source& source, std::string_view text) {
  const auto colon = text.rfind(':');
  const auto head = text.substr(0, colon), tail = text.substr(colon + 1);
  const bool has_port = usual_ip(head) && port_number(tail);
  const bool is_whole = usual_ip(text).has_value();
  if (has_port && is_whole) {
    source.refuse(
        fmt::format("can be read in two ways: write [{}]:{} for the port {}, or [{}] for "
                    "an address without a port",
                    head, tail, tail, text));
  }
  if (has_port) source.refuse(fmt::format("needs brackets: write [{}]:{}", head, tail));
  if (!is_whole && text.find('%') == text.npos) {
    source.refuse(
        "has several colons and is no IPv6 address: must be HOST:PORT, or [ADDRESS]:PORT with an "
        "IPv6 address");
  }
  return {.host = host_in(source, text, false), .port = {}};
}

Parts parts_of(const Source& source, std::string_view text) {
  if (text.starts_with('[')) return parts_in_brackets(source, text);
  if (std::ranges::count(text, ':') > 1) return parts_of_ip6(source, text);
  const auto colon = text.find(':');
  Parts parts{.host = host_in(source, text.substr(0, colon), false), .port = {}};
  if (colon != text.npos) parts.port = text.substr(colon + 1);
  return parts;
}

int port_in(const Source& source, std::string_view text) {
  const auto port = port_number(text);
  if (!port) {
    source.refuse(fmt::format("has the port \"{}\": must be a number from 0 to {}",
                              printable(text, kMostQuoted), kHighestPort));
  }
  return *port;
}

HostPort place_in(const Source& source, std::string_view text) {
  auto [host, port] = parts_of(source, text);
  if (!port) {
    source.refuse(fmt::format("has no port: write {}", HostPort{host, 7400}.text()));
  }
  return {.host = std::move(host), .port = port_in(source, *port)};
}

bool is_same_letter(unsigned char a, unsigned char b) {
  return std::tolower(a) == std::tolower(b);
}

}  // namespace

std::string HostPort::text() const {
  return host.find(':') == host.npos ? fmt::format("{}:{}", host, port)
                                     : fmt::format("[{}]:{}", host, port);
}

std::string HostPort::endpoint() const {
  return std::string(kScheme) + text();
}

std::optional<std::string> usual_ip(std::string_view text) {
  if (text.find('\0') != text.npos) return std::nullopt;  // the system's functions end there
  char usual[INET6_ADDRSTRLEN] = "";
  in_addr ip4{};
  if (::inet_pton(AF_INET, std::string(text).c_str(), &ip4) == 1) return std::string(text);
  const auto ip6 = ip6_in(text);
  if (!ip6) return std::nullopt;
  if (IN6_IS_ADDR_V4MAPPED(&ip6->address)) {
    return ::inet_ntop(AF_INET, &ip6->address.s6_addr[12], usual, sizeof(usual));
  }
  ::inet_ntop(AF_INET6, &ip6->address, usual, sizeof(usual));
  return ip6->interface.empty() ? std::string(usual) : fmt::format("{}%{}", usual, ip6->interface);
}

bool is_any_host(std::string_view host) {
  return host == kAnyHost || host == "::" || host == "0.0.0.0";
}

std::string parse_host(const std::string& field, std::string_view text) {
  const auto [host, port] = parse_host_maybe_port(field, text);
  if (port) Source{field, text}.refuse("must be a host without a port");
  return host;
}

HostMaybePort parse_host_maybe_port(const std::string& field, std::string_view text) {
  const Source source{field, text};
  const auto parts = parts_of(source, text);
  HostMaybePort place{.host = parts.host, .port = {}};
  if (parts.port) place.port = port_in(source, *parts.port);
  return place;
}

HostPort parse_host_port(const std::string& field, std::string_view text) {
  return place_in({field, text}, text);
}

HostPort parse_endpoint(const std::string& field, std::string_view text) {
  const Source source{field, text};
  const bool has_scheme = text.size() >= kScheme.size() &&
                          std::equal(kScheme.begin(), kScheme.end(), text.begin(), is_same_letter);
  if (!has_scheme) {
    source.refuse(
        "must be tcp://HOST:PORT, such as tcp://203.0.113.10:7400 or tcp://[2001:db8::10]:7400");
  }
  const auto place = text.substr(kScheme.size());
  if (!place.ends_with(":*")) return place_in(source, place);
  return place_in(source, std::string(place.substr(0, place.size() - 1)) + "0");
}

}  // namespace farstep::wan
