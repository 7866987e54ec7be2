// A process's peak of memory never falls, and a trial of too much may end it. So a trial runs in a
// copy. Its results come back through a pipe, a line of JSON each.
#include "heterogeneity/profile/forked.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "trainer/base/error.h"

namespace farstep::heterogeneity {

namespace {

// One line of the pipe: {"text": ...} or {"error": ..., "kind": ...}.
using Message = nlohmann::json;

void write_line(int descriptor, const Message& message) {
  // A path in an error's text may not be UTF-8.
  const auto line = message.dump(-1, ' ', false, Message::error_handler_t::replace) + "\n";
  // A pipe may take a part of a line.
  for (std::size_t done = 0; done < line.size();) {
    const auto written = ::write(descriptor, line.data() + done, line.size() - done);
    if (written < 0 && errno != EINTR) _exit(1);  // the original has gone
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

// Runs in the copy from the fork to its end.
[[noreturn]] void be_the_copy(const std::function<void(const Tell&)>& work, pid_t parent,
                              int descriptor) {
  // A measurement that outlives its program would occupy the device for the next one.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before the call above.
  if (::getppid() != parent) _exit(1);
  try {
    work([&](const std::string& text) { write_line(descriptor, {{"text", text}}); });
  } catch (const Error& error) {
    write_line(descriptor, {{"error", error.what()}, {"kind", error.exit_code()}});
  } catch (const std::exception& error) {
    write_line(descriptor,
               {{"error", error.what()}, {"kind", static_cast<int>(ErrorKind::kInternal)}});
  }
  // Without destructors and buffers, which would flush the original's files a second time.
  _exit(0);
}

[[noreturn]] void rethrow(const Message& message) {
  const auto text = message.at("error").get<std::string>();
  switch (message.at("kind").get<ErrorKind>()) {
    case ErrorKind::kConfig:
      throw ConfigError(text);
    case ErrorKind::kData:
      throw DataError(text);
    case ErrorKind::kPeer:
      throw PeerError("", text);
    case ErrorKind::kDivergence:
      throw DivergenceError(text);
    case ErrorKind::kInternal:
      throw InternalError(text);
  }
  throw InternalError(text);
}

// Passes texts on until the copy closes its end of the pipe. Returns its error, if any.
std::optional<Message> listen(int descriptor, const Tell& receive) {
  std::string pending;
  std::array<char, 4096> chunk;
  while (true) {
    const auto count = ::read(descriptor, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    pending.append(chunk.data(), static_cast<std::size_t>(count));
    for (auto end = pending.find('\n'); end != pending.npos; end = pending.find('\n')) {
      auto message = Message::parse(pending.substr(0, end));
      pending.erase(0, end + 1);
      if (message.contains("error")) return message;
      receive(message.at("text").get<std::string>());
    }
  }
}

// The copy's process: killed if it still runs at destruction. wait() returns its wait status.
class Copy {
 public:
  explicit Copy(pid_t pid) : pid_(pid) {}
  ~Copy() {
    if (pid_ < 0) return;
    kill();
    wait();
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  void kill() const { ::kill(pid_, SIGKILL); }
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

}  // namespace

// The copy's end of the pipe closes when it ends in any way, which ends listen().
ForkEnd run_forked(const std::function<void(const Tell& tell)>& work, const Tell& receive,
                   const std::stop_token& stop) {
  std::array<int, 2> ends;
  if (::pipe(ends.data()) != 0) {
    throw InternalError(fmt::format("no pipe to a copy of the process: {}", std::strerror(errno)));
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    be_the_copy(work, parent, ends[1]);
  }
  ::close(ends[1]);
  // Closed here, so that a read ends when the copy ends.
  const std::shared_ptr<const int> reader(&ends[0], [](const int* end) { ::close(*end); });
  if (pid < 0) {
    throw InternalError(fmt::format("no copy of the process: {}", std::strerror(errno)));
  }
  Copy copy(pid);
  std::optional<Message> error;
  {
    const std::stop_callback kill_copy(stop, [&copy] { copy.kill(); });
    error = listen(ends[0], receive);
  }
  const int status = copy.wait();
  if (error) rethrow(*error);
  if (WIFEXITED(status)) return ForkEnd::kDone;
  return stop.stop_requested() ? ForkEnd::kStopped : ForkEnd::kKilled;
}

}  // namespace farstep::heterogeneity
