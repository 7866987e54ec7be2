// One thread reads the packets of all sites, holds each until it is due, and writes it to its
// destination. So all events have one order, and the delay of a packet depends on no other thread.
#include "wan/lab/lab.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/base/system/child_process.h"
#include "trainer/base/system/file.h"
#include "trainer/config/json_fields.h"
#include "wan/lab/control.h"
#include "wan/lab/ipv4.h"
#include "wan/lab/router.h"
#include "wan/lab/site_namespace.h"
#include "wan/link/lab_file.h"

namespace farstep::wan {

namespace {

// Without a turn's length each packet would cost a system call. 0.2 ms is small beside a WAN's
// delay.
constexpr int kBatchPackets = 64;        // of one site before the others have a turn
constexpr double kTurnSeconds = 200e-6;  // between two turns: a busy lab moves packets in bunches
constexpr double kLongestWaitSeconds = 3600;

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  // SIGHUP comes when the terminal closes, SIGCHLD when the command or a namespace's holder ends.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  return signals;
}

// Asks for real-time scheduling, so that packets move on time on a busy machine.
void ask_for_punctuality() {
  // The kernel otherwise rounds a wait up by 50 us.
  ::prctl(PR_SET_TIMERSLACK, 1);
  const sched_param priority{.sched_priority = 1};
  if (::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &priority) != 0) {
    spdlog::warn("no real-time priority ({}): delays vary when the machine is busy",
                 std::strerror(errno));
  }
}

class Lab {
 public:
  explicit Lab(const LabRequest& request)
      : request_(request),
        router_(request.spec),
        control_(request.folder / "control"),
        lab_file_(request.folder / kLabFile) {
    // Before any child starts, so that no signal is missed.
    const auto signals = watched_signals();
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    signals_ = ::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    LabFile file{.sites = {}, .control = (request.folder / "control").string()};
    for (std::size_t i = 0; i < router_.num_sites(); ++i) {
      sites_.push_back(std::make_unique<SiteNamespace>(router_.address(i), request.spec.mtu_bytes));
      file.sites.push_back({.pid = sites_[i]->holder(),
                            .address = ipv4_text(router_.address(i)),
                            .interface = kSiteInterface});
    }
    // Written last: who waits for this file finds all sites up.
    write_file_durably(lab_file_, to_json(file).dump(1) + "\n");
  }

  ~Lab() {
    ::unlink(lab_file_.c_str());
    ::close(signals_);
  }
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  int run() {
    // The command comes first, as it would inherit the short timer slack.
    start_command();
    ask_for_punctuality();
    std::vector<pollfd> entries;
    for (const auto& site : sites_) entries.push_back({site->descriptor(), POLLIN, 0});
    entries.push_back({signals_, POLLIN, 0});
    entries.push_back({control_.descriptor(), POLLIN, 0});
    while (!exit_code_) {
      wait(entries);
      for (std::size_t i = 0; i < sites_.size(); ++i) {
        if (entries[i].revents != 0) collect(i);
      }
      deliver();
      if (entries[sites_.size()].revents != 0) take_signals();
      if (entries[sites_.size() + 1].revents != 0) control_.serve(router_);
    }
    return *exit_code_;
  }

  LabCounters counters() const { return router_.counters(); }

 private:
  void start_command() {
    if (request_.command.empty()) {
      spdlog::info("{} sites are up, {} says where; Ctrl-C ends them", sites_.size(),
                   lab_file_.string());
      return;
    }
    ::setenv("FARSTEP_LAB", lab_file_.c_str(), 1);
    const auto& command = request_.command;
    // The command is in the lab's process group: the terminal sends SIGINT to both.
    command_.emplace(command.front(), std::vector<std::string>(command.begin() + 1, command.end()),
                     ChildOptions{.has_own_group = false});
  }

  // Waits until a site has sent a packet, a packet is due, or another event occurs. Returns at once
  // after a quiet time, so that delays stay exact.
  void wait(std::vector<pollfd>& entries) {
    const double left = router_.next_due_seconds() - clock_.now_seconds();
    const double seconds = std::clamp(left, 0.0, kLongestWaitSeconds);
    const timespec timeout{.tv_sec = static_cast<time_t>(seconds),
                           .tv_nsec = static_cast<long>(1e9 * (seconds - std::floor(seconds)))};
    if (::ppoll(entries.data(), entries.size(), &timeout, nullptr) < 0) {
      FARSTEP_CHECK(errno == EINTR, "ppoll: {}", std::strerror(errno));
    }
    // A turn collects the packets of this time, so a busy lab does not wake for each one.
    clock_.sleep_until(turn_seconds_ + kTurnSeconds);
    turn_seconds_ = clock_.now_seconds();
  }

  void collect(std::size_t site) {
    for (int i = 0; i < kBatchPackets; ++i) {
      const auto bytes = sites_[site]->read_packet(router_.room());
      if (bytes == 0) return;
      router_.accept(site, bytes, clock_.now_seconds());
    }
  }

  void deliver() {
    router_.deliver(clock_.now_seconds(),
                    [this](std::size_t site, std::span<const std::byte> packet) {
                      sites_[site]->write_packet(packet);
                    });
  }

  void take_signals() {
    signalfd_siginfo info;
    while (::read(signals_, &info, sizeof(info)) == sizeof(info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) {
        reap();
      } else if (!command_) {
        // Without a command Ctrl-C is the usual end, and no failure.
        exit_code_ = 0;
      } else if (info.ssi_code != SI_KERNEL) {  // SI_KERNEL: the terminal has sent it to both
        command_->send_signal(signal);
      }
    }
  }

  void reap() {
    if (command_) exit_code_ = command_->exit_code();
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const auto holder = sites_[i]->holder();
      // Without its holder a site's namespace may vanish, and its packets with it.
      FARSTEP_CHECK(::waitpid(holder, nullptr, WNOHANG) != holder,
                    "process {}, which holds the namespace of site {}, was killed", holder, i + 1);
    }
  }

  const LabRequest& request_;
  RealClock clock_;
  Router router_;
  LabControl control_;
  const std::filesystem::path lab_file_;
  int signals_ = -1;
  std::vector<std::unique_ptr<SiteNamespace>> sites_;
  double turn_seconds_ = 0;  // when the last turn began
  std::optional<ChildProcess> command_;
  std::optional<int> exit_code_;
};

}  // namespace

int run_lab(const LabRequest& request) {
  Lab lab(request);
  const int exit_code = lab.run();
  const auto counters = lab.counters();
  write_file_durably(request.folder / "counters.json", to_json(counters).dump(1) + "\n");
  fmt::print(stderr, "{}", counters_table(counters));
  return exit_code;
}

}  // namespace farstep::wan
