#include "trainer/run/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "trainer/base/error.h"

namespace farstep {

namespace {

constexpr int kExitCannotExecute = 127;
constexpr std::string_view kCannotEnter = "the network namespace cannot be entered\n";

// Runs in the child between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char* const* arguments, int output, int network_namespace, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kExitCannotExecute);  // it died before the line above
  for (const int signal : {SIGINT, SIGTERM})
    ::signal(signal, SIG_DFL);  // not the parent's handlers
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  if (network_namespace != kSameNetwork && ::setns(network_namespace, CLONE_NEWNET) != 0) {
    [[maybe_unused]] const auto written =
        ::write(STDERR_FILENO, kCannotEnter.data(), kCannotEnter.size());
    ::_exit(kExitCannotExecute);
  }
  ::execv(arguments[0], arguments);
  ::_exit(kExitCannotExecute);
}

}  // namespace

ChildProcess::ChildProcess(const std::filesystem::path& program,
                           const std::vector<std::string>& arguments,
                           const std::filesystem::path& output_file, int network_namespace) {
  const int output =
      ::open(output_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0644);
  if (output < 0) {
    throw DataError(
        fmt::format("{}: cannot be written: {}", output_file.string(), std::strerror(errno)));
  }
  std::vector<std::string> all{program.string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(pointers.data(), output, network_namespace, parent);
  const int error = errno;
  ::close(output);
  FARSTEP_CHECK(pid_ > 0, "{} cannot be started: {}", program.string(), std::strerror(error));
  pid_descriptor_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

ChildProcess::~ChildProcess() {
  if (!exit_code()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (pid_descriptor_ >= 0) ::close(pid_descriptor_);
}

std::optional<int> ChildProcess::exit_code() {
  int status = 0;
  if (!exit_code_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return exit_code_;
}

void ChildProcess::send_signal(int signal) {
  if (!exit_code()) ::kill(pid_, signal);
}

}  // namespace farstep
