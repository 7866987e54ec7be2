// Serves the page of a run's folder: it follows the event files, looks for alarms, and tells the
// browsers what changes. It only reads; whatever a request does, the run does not notice.
//
// A thread of its own follows the files; the server's thread answers. All methods are thread-safe.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/account/run_follower.h"
#include "trainer/base/clock.h"
#include "trainer/watch/alarm_command.h"
#include "trainer/watch/http_server.h"

namespace farstep {

struct WatchOptions {
  std::string listen = "127.0.0.1:8377";
  std::string token_file, on_alarm;
  std::string listen_option = "--listen";  // what the command calls `listen`; no option itself

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit(
        "listen", listen,
        "HOST:PORT of the page, such as 127.0.0.1:8377 or [::1]:8377; the host * is all addresses "
        "of the machine, and port 0 takes a free one");
    visit(
        "token_file", token_file,
        "file with the token that readers need; required unless `listen` is of this machine only");
    visit(
        "on_alarm", on_alarm,
        "program that is run for each alarm that begins, with the arguments RUN KIND SUBJECT TEXT");
  }
};

// Where a page is served. It tells the coordinator's time: at the coordinator its machine's own,
// and elsewhere what the records of the one site say, if there is one.
enum class PagePlace { kCoordinator, kElsewhere };

class WatchService {
 public:
  // Listens at once. Throws ConfigError for a wrong address or token, or an address that other
  // machines reach and no token; and what HttpServer throws. `folders` are those of a run or of its
  // sites; they may be empty or absent yet. `clock` must outlive the service.
  WatchService(std::vector<std::filesystem::path> folders, WatchOptions options, const Clock& clock,
               PagePlace place = PagePlace::kElsewhere);
  ~WatchService();
  WatchService(const WatchService&) = delete;
  WatchService& operator=(const WatchService&) = delete;

  // Returns "http://127.0.0.1:8377/"; of a page at all addresses of the machine, one that others
  // may reach.
  std::string url() const;

 private:
  void run();
  // Reads the files, and counts up the version if anything is new.
  void follow();
  HttpResponse answer(const HttpRequest& request);
  HttpResponse answer_api(const HttpRequest& request);
  Json status() const;
  // Returns the time by the coordinator's clock, as the records have it.
  double unix_seconds() const;
  // Returns why nothing can be read; empty if something can, or nothing is there yet.
  std::string error() const;

  const WatchOptions options_;
  const PagePlace place_;
  const std::string token_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ending_ = false;  // guarded by mutex_, as all members down to charts_
  RunFollower follower_;
  double retry_seconds_ = 0;  // when to read unreadable files again
  std::vector<Alarm> alarms_;
  int64_t version_ = 0;
  std::pair<int64_t, std::string> charts_{-1, ""};  // of that version
  AlarmCommand alarm_command_;                      // used by the thread only

  HttpServer server_;
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace farstep
