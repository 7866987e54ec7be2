#include "trainer/watch/watch_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/charts/chart_files.h"
#include "trainer/report/page_style.h"
#include "trainer/report/report.h"
#include "trainer/watch/access.h"
#include "trainer/watch/page.h"
#include "trainer/watch/prometheus.h"
#include "trainer/watch/status_json.h"
#include "wan/sockets/local_address.h"

namespace farstep {

namespace {

// A step takes longer than this in most runs, and a person sees no delay.
constexpr double kLookSeconds = 0.5;
// Without news a stream says so often that its reader is still served.
constexpr int64_t kLooksOfSilence = 20;
// An unreadable file is read again from its begin, which costs as much as a readable one. So the
// pause is twenty times the last reading, and at least so long.
constexpr double kRetrySeconds = 5;
constexpr double kRetryPause = 20;
constexpr double kLeastWindow = 10, kMostWindow = 86'400;  // of the timeline, seconds
constexpr const char* kJsonType = "application/json";

// Of a name the first address of this machine: the page has one port.
wan::SocketAddress address_of(const WatchOptions& options) {
  const auto& option = options.listen_option;
  return wan::listening_addresses(option, wan::parse_host_port(option, options.listen)).front();
}

std::string token_of(const WatchOptions& options) {
  if (!options.token_file.empty()) return read_token(options.token_file);
  if (!address_of(options).is_loopback()) {
    throw ConfigError(
        fmt::format("{} {}: other machines can connect to it, so readers need a token: state "
                    "--token-file, or listen at 127.0.0.1 and let readers come by ssh -L",
                    options.listen_option, options.listen));
  }
  return "";
}

// A name in a damaged file may not be UTF-8.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpResponse json_response(const Json& json) {
  return {.type = kJsonType, .body = text_of(json) + "\n"};
}

HttpResponse not_found(const std::string& path) {
  return {.status = 404, .body = path.substr(0, 200) + " is not here; the page is /\n"};
}

// Returns the window that the request names, 0 for the whole run; nullopt if it is none.
std::optional<double> window_of(const HttpRequest& request) {
  const auto text = HttpRequest::value(request.query, "seconds");
  if (text.empty()) return 600;
  if (text == "all") return 0;
  int64_t seconds = 0;
  const auto* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || parsed != end) return std::nullopt;
  const auto window = static_cast<double>(seconds);
  if (window < kLeastWindow || window > kMostWindow) return std::nullopt;
  return window;
}

}  // namespace

WatchService::WatchService(std::vector<std::filesystem::path> folders, WatchOptions options,
                           const Clock& clock, PagePlace place)
    : options_(std::move(options)),
      place_(place),
      token_(token_of(options_)),
      clock_(clock),
      follower_(std::move(folders)),
      alarm_command_(options_.on_alarm, clock),
      server_(address_of(options_), [this](const HttpRequest& request) { return answer(request); }),
      thread_([this] { run(); }) {}

WatchService::~WatchService() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::string WatchService::url() const {
  return fmt::format("http://{}/", wan::shown_address(server_.address()).text());
}

void WatchService::run() {
  int64_t silent_looks = 0;
  std::string failure;
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    const auto before = version_;
    try {
      follow();
    } catch (const std::exception& error) {
      // Training does not depend on its page, which shows what was read before.
      if (failure != error.what()) spdlog::warn("watch: {}", error.what());
      failure = error.what();
    }
    silent_looks = version_ == before ? silent_looks + 1 : 0;
    std::string event;
    if (silent_looks == 0) event = sent_event("status", text_of(status()));
    if (silent_looks >= kLooksOfSilence) {
      event = ": still here\n\n";
      silent_looks = 1;
    }
    const auto run = follower_.report() != nullptr ? follower_.report()->run : "";
    const auto alarms = alarms_;
    lock.unlock();
    if (!event.empty()) server_.publish(event);
    server_.tick();
    alarm_command_.update(run, alarms);
    lock.lock();
    changed_.wait_for(lock, std::chrono::duration<double>(kLookSeconds),
                      [this] { return is_ending_; });
  }
}

// A file that was replaced belongs to a new run, and is read from its start. What cannot be read
// stays on the page until it can.
void WatchService::follow() {
  const auto before = follower_.unreadable();
  const double begin_seconds = clock_.now_seconds();
  const bool retries = !before.empty() && begin_seconds >= retry_seconds_;
  if (retries) follower_.retry();
  bool has_changed = follower_.poll();
  const auto& unreadable = follower_.unreadable();
  for (const auto& file : unreadable) {
    if (std::ranges::find(before, file) == before.end()) spdlog::warn("watch: {}", file.reason);
  }
  if (!unreadable.empty() && (retries || before.empty())) {
    const double end_seconds = clock_.now_seconds();
    retry_seconds_ =
        end_seconds + std::max(kRetrySeconds, kRetryPause * (end_seconds - begin_seconds));
  }
  if (const auto* report = follower_.report()) {
    auto alarms = alarms_of(*report, unix_seconds());
    const auto is_same = [](const Alarm& a, const Alarm& b) { return a.is_same(b); };
    if (!std::ranges::equal(alarms, alarms_, is_same)) has_changed = true;
    alarms_ = std::move(alarms);
  }
  if (has_changed) ++version_;
}

std::string WatchService::error() const {
  if (follower_.report() != nullptr) return "";
  std::string text;
  for (const auto& file : follower_.unreadable()) {
    text += fmt::format("{}{}", text.empty() ? "" : "; ", file.reason);
  }
  return text;
}

// Away from the coordinator, a page with the records of one site is mostly at that site, and its
// machine's clock is as wrong as the records say. With those of several the clock is taken to be
// right.
double WatchService::unix_seconds() const {
  const auto* report = follower_.report();
  const bool is_at_site =
      place_ == PagePlace::kElsewhere && report != nullptr && report->sites.size() == 1;
  return clock_.unix_seconds() + (is_at_site ? report->sites.front().run.clock_offset_seconds : 0);
}

Json WatchService::status() const {
  Json json;
  if (const auto* report = follower_.report()) {
    json = status_json(*report, alarms_, version_, unix_seconds());
  } else {
    json = {{"version", version_}, {"now", unix_seconds()}, {"run", nullptr}};
  }
  const auto reason = error();
  json["error"] = reason.empty() ? Json(nullptr) : Json(reason);
  json["unreadable"] = unreadable_json(follower_.unreadable());
  return json;
}

HttpResponse WatchService::answer(const HttpRequest& request) {
  if (auto refused = refusal(request, token_)) return *std::move(refused);
  if (request.path == "/") {
    return {.type = "text/html; charset=utf-8", .body = std::string(page_html())};
  }
  if (request.path == "/watch.css") {
    return {.type = "text/css; charset=utf-8",
            .body = page_style() + std::string(chart_css()) + std::string(page_css())};
  }
  if (request.path == "/watch.js") {
    return {.type = "text/javascript; charset=utf-8", .body = std::string(page_script())};
  }
  if (request.path == "/timeline.js") {
    return {.type = "text/javascript; charset=utf-8", .body = std::string(page_timeline_script())};
  }
  if (request.path == "/charts.js") {
    return {.type = "text/javascript; charset=utf-8", .body = std::string(chart_script())};
  }
  if (request.path == "/icon.svg") {
    return {.type = "image/svg+xml", .body = std::string(page_icon())};
  }
  return answer_api(request);
}

HttpResponse WatchService::answer_api(const HttpRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto& path = request.path;
  if (path == "/api/status") return json_response(status());
  if (path == "/api/events") {
    return {.type = "text/event-stream",
            .body = sent_event("status", text_of(status())),
            .is_stream = true};
  }
  const bool is_known = path == "/metrics" || path == "/api/report" || path == "/api/timeline" ||
                        path == "/api/charts" || path == "/api/settings";
  if (!is_known) return not_found(path);
  const auto* report = follower_.report();
  if (report == nullptr) {
    const auto reason = error();
    return {.status = 503,
            .body = (reason.empty() ? "no site has recorded anything yet" : reason) + "\n"};
  }
  if (path == "/metrics") {
    return {.type = kPrometheusType, .body = prometheus_text(*report, alarms_)};
  }
  if (path == "/api/report") return json_response(report_json(*report));
  if (path == "/api/settings") return json_response(settings_json(*report));
  if (path == "/api/charts") {
    // Drawings take a while, and all readers want the same.
    if (charts_.first != version_) charts_ = {version_, text_of(charts_json(*report))};
    return {.type = kJsonType, .body = charts_.second};
  }
  const auto window = window_of(request);
  if (!window) {
    return {
        .status = 400,
        .body = fmt::format("seconds must be a whole number from {:.0f} to {:.0f}, or \"all\"\n",
                            kLeastWindow, kMostWindow)};
  }
  return json_response(timeline_json(*report, *window, unix_seconds(), alarms_));
}

}  // namespace farstep
