// Messages are plain structs with field lists, and this unit is the one envelope around them:
// version, type, limits, and which answer belongs to which request.
#include "wan/protocol/protocol.h"

#include <array>

#include "trainer/base/error.h"
#include "trainer/config/strict_json.h"

namespace farstep::wan {

namespace {

// No run needs more. A stranger's frame may be 16 MiB, and a parsed value takes many times its
// text.
constexpr JsonLimits kMessageLimits{.depth = 64, .members = 256, .values = 1'000'000};

// Compares the type with each alternative of the variant in turn. The variant is the list of
// messages, so no table beside it can lack one.
template <typename Variant, std::size_t I = 0>
Variant read_message(const std::string& type, const Json& body) {
  if constexpr (I == std::variant_size_v<Variant>) {
    throw ConfigError(fmt::format("a control message has the unknown type '{}'", type));
  } else {
    using Message = std::variant_alternative_t<I, Variant>;
    if (type == Message::kType) return read_json<Message>(body, "message " + type);
    return read_message<Variant, I + 1>(type, body);
  }
}

// The version is checked before the members, so that another version gets a message about that.
template <typename Variant>
Variant decode(const std::string& frame) {
  Json json = parse_untrusted(frame, "a control message", kMessageLimits);
  if (!json.is_object() || !json.contains("protocol") || !json["protocol"].is_number_integer() ||
      !json.contains("type") || !json["type"].is_string()) {
    throw DataError("a control message has no protocol version and type");
  }
  if (json["protocol"] != kProtocolVersion) {
    throw ConfigError(
        fmt::format("a control message is of protocol {}, this process speaks protocol {}: use the "
                    "same version of Farstep at the coordinator and at all sites",
                    json["protocol"].dump(), kProtocolVersion));
  }
  const std::string type = json["type"];
  // The message's own list of fields does not have these two, and refuses what it does not have.
  json.erase("protocol");
  json.erase("type");
  return read_message<Variant>(type, json);
}

// Text of a user, such as a path, may not be UTF-8; such bytes are replaced.
template <typename Variant>
std::string encode_message(const Variant& message) {
  return std::visit(
      [](const auto& content) {
        Json json{{"protocol", kProtocolVersion}, {"type", content.kType}};
        // The envelope is not one of the fields, so the content may not overwrite it.
        json.update(to_json(content));
        return json.dump(-1, ' ', false, Json::error_handler_t::replace);
      },
      message);
}

// A request is repeated until its answer comes, so answers may come twice, or after the next
// request. These functions pair them by what both say about the sync.
template <typename Answer, typename Request>
bool same_sync(const Answer& answer, const Request& request) {
  return answer.generation == request.generation && answer.round == request.round &&
         answer.fragment == request.fragment;
}

template <typename Request>
bool is_newer(const ViewMessage& view, const Request& request) {
  return view.generation > request.generation;
}

// Defines which answer completes which request. A view of a newer generation completes every
// request of the old one: no other answer will come. All other pairs fall through to false.
struct AnswerMatcher {
  bool operator()(const Welcome&, const RegisterMessage&) const { return true; }
  bool operator()(const RefusedMessage&, const RegisterMessage&) const { return true; }
  bool operator()(const StoredMessage& a, const PutMessage& r) const { return a.key == r.key; }
  bool operator()(const StoredMessage& a, const OfferMessage& r) const { return a.key == r.token; }
  bool operator()(const UnwantedMessage& a, const OfferMessage& r) const {
    return a.token == r.token && a.round == r.round;
  }
  bool operator()(const ValueMessage& a, const GetMessage& r) const { return a.key == r.key; }
  bool operator()(const Go& a, const ArriveMessage& r) const { return same_sync(a, r); }
  // No generation: the newcomer is no member yet.
  bool operator()(const LateMessage& a, const ArriveMessage& r) const {
    return a.round == r.round && a.fragment == r.fragment;
  }
  bool operator()(const HandoverMessage& a, const FetchMessage& r) const {
    return a.token == r.token;
  }
  bool operator()(const CommittedMessage& a, const VoteMessage& r) const { return same_sync(a, r); }
  bool operator()(const GoodbyeMessage&, const LeaveMessage&) const { return true; }
  bool operator()(const ViewMessage& a, const ArriveMessage& r) const { return is_newer(a, r); }
  bool operator()(const ViewMessage& a, const VoteMessage& r) const { return is_newer(a, r); }
  bool operator()(const ViewMessage& a, const SuspectMessage& r) const { return is_newer(a, r); }
  template <typename Answer, typename Request>
  bool operator()(const Answer&, const Request&) const {
    return false;
  }
};

int digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  throw DataError(fmt::format("'{}' is not a lower-case hexadecimal digit", digit));
}

}  // namespace

std::span<const std::string_view> enum_names(Resume) {
  static constexpr std::array<std::string_view, 3> kNames{"never", "always", "auto"};
  return kNames;
}

std::string text_of(const SyncId& sync, int64_t num_fragments) {
  if (sync == kMeasuringSync) return "the measuring sync";
  return num_fragments == 1 ? fmt::format("round {}", sync.round)
                            : fmt::format("round {}, fragment {}", sync.round, sync.fragment);
}

std::string encode(const SiteMessage& message) {
  return encode_message(message);
}

std::string encode(const CoordinatorMessage& message) {
  return encode_message(message);
}

SiteMessage decode_site_message(const std::string& frame) {
  return decode<SiteMessage>(frame);
}

CoordinatorMessage decode_coordinator_message(const std::string& frame) {
  return decode<CoordinatorMessage>(frame);
}

bool answers(const CoordinatorMessage& answer, const SiteMessage& request) {
  return std::visit(AnswerMatcher{}, answer, request);
}

bool answers_registration(const CoordinatorMessage& message) {
  return answers(message, RegisterMessage{}) || std::holds_alternative<WaitingMessage>(message) ||
         std::holds_alternative<ClaimMessage>(message);
}

std::string to_hex(std::string_view bytes) {
  std::string digits;
  digits.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    digits += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    digits += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
  }
  return digits;
}

std::string from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) throw DataError("hexadecimal text has an odd number of digits");
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(16 * digit_value(digits[i]) + digit_value(digits[i + 1]));
  }
  return bytes;
}

}  // namespace farstep::wan
