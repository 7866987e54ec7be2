#include "trainer/telemetry/event.h"

#include <cmath>

#include "trainer/base/error.h"
#include "trainer/base/system/printable.h"
#include "trainer/config/strict_json.h"

namespace farstep {

namespace {

constexpr std::size_t kMostOfError = 500;

// A line as one field list: the fields common to all events, then the event's own.
template <typename Body>
struct Line {
  std::string event;
  double time = 0;
  std::string site;
  Body body;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("event", event, "kind of event", kRequired);
    visit("time", time, "when the line was written, unix seconds", kRequired);
    visit("site", site, "who wrote it", kRequired);
    body.fields(visit);
  }
};

template <typename Body>
bool parse_as(const std::string& kind, const Json& json, const std::string& place, Record& into) {
  if (kind != Body::kName) return false;
  auto line = read_json<Line<Body>>(json, place);
  into = {line.time, std::move(line.site), std::move(line.body)};
  return true;
}

// A record may be of another site, and its texts go to terminals, tables and pages.
void make_plain(Json& value) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    if (!is_one_line(text)) text = one_line(text);
  } else if (value.is_structured()) {
    for (auto& part : value) make_plain(part);
  }
}

// Written for every kind by the compiler, so no kind can be forgotten.
template <typename... Bodies>
bool parse_any(const std::string& kind, const Json& json, const std::string& place,
               std::variant<Bodies...>&& /*kinds*/, Record& into) {
  return (parse_as<Bodies>(kind, json, place, into) || ...);
}

}  // namespace

std::span<const std::string_view> enum_names(SpanCause) {
  static constexpr std::array<std::string_view, kSpanCauses> kNames = {
      "wait", "wan", "outer", "data", "checkpoint", "evaluate", "recovery", "serve"};
  return kNames;
}

// JSON has no infinities or NaN: printing one would give an unreadable file later.
Json to_record(const Record& record) {
  Json json = std::visit(
      [&record](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        return to_json(Line<Body>{std::string(Body::kName), record.time, record.site, body});
      },
      record.event);
  for (const auto& [name, value] : json.items()) {
    FARSTEP_CHECK(!value.is_number_float() || std::isfinite(value.get<double>()),
                  "event {}: {} is not finite", json["event"].get<std::string>(), name);
  }
  return json;
}

// An event file is data, so a ConfigError of the strict reader becomes a DataError.
Record parse_record(std::string_view line, const std::string& file, int64_t line_number) {
  const std::string place = fmt::format("{}:{}", file, line_number);
  auto json = parse_if_json(line, place + ": is not an event record").value_or(nullptr);
  if (!json.is_object()) throw DataError(place + ": is not an event record: not a JSON object");
  make_plain(json);
  const auto event = json.find("event");
  if (event == json.end() || !event->is_string()) {
    throw DataError(place + ": is not an event record: no \"event\" that names its kind");
  }
  const auto kind = event->get<std::string>();
  Record record;
  try {
    if (parse_any(kind, json, place, Event{}, record)) return record;
  } catch (const ConfigError& error) {
    throw DataError(one_line(error.what(), kMostOfError));  // with a name out of the record
  }
  throw DataError(
      fmt::format("{}: unknown event '{:.80}'; written by a newer Farstep?", place, kind));
}

}  // namespace farstep
