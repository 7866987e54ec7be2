// Commands to a running lab: read its counters, change a site's access link, cut and heal it.
//
// A unix socket (SOCK_SEQPACKET): a client connects, sends one JSON request and receives one JSON
// answer. Never blocks. Not thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/config/fields.h"
#include "wan/lab/router.h"

namespace farstep::wan {

enum class ControlCommand { kSet, kCut, kHeal, kCounters };
std::span<const std::string_view> enum_names(ControlCommand);

struct ControlRequest {
  ControlCommand command = ControlCommand::kCounters;
  std::optional<int64_t> site;
  std::optional<double> rate_bits_per_second, delay_seconds, loss, queue_seconds;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("command", command, "what to do", kRequired);
    visit("site", site, "number of the site, from 1; all but counters need it", at_least(1));
    visit("rate_bits_per_second", rate_bits_per_second, "set: new rate of the access link",
          above(0));
    visit("delay_seconds", delay_seconds, "set: new delay, one way", at_least(0));
    visit("loss", loss, "set: new share of lost packets", in_range(0, 1));
    visit("queue_seconds", queue_seconds, "set: new length of the queue", at_least(0));
  }
};

// Executes a request (JSON) and returns the answer (JSON): the counters, the site's present access
// link, or {"error": ...}.
std::string answer_request(Router& router, const std::string& request);

class LabControl {
 public:
  // Listens at `path`. Throws ConfigError if another lab listens there or the path cannot be used.
  explicit LabControl(const std::filesystem::path& path);
  // Removes the path.
  ~LabControl();
  LabControl(const LabControl&) = delete;
  LabControl& operator=(const LabControl&) = delete;

  // A descriptor that poll(2) reports as readable when serve() has requests to answer.
  int descriptor() const { return events_; }
  // Answers the requests that have arrived.
  void serve(Router& router);

 private:
  const std::filesystem::path path_;
  int events_ = -1;  // an epoll of the listening socket and its clients
  int listener_ = -1;
};

}  // namespace farstep::wan
