#include "trainer/base/system/child_process.h"

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

// As shells have it.
constexpr int kExitCannotExecute = 127;

// Ends the child by the system call itself. ThreadSanitizer's _exit() writes the parent's buffered
// output once more.
[[noreturn]] void end_child() {
  // The call does not return; the loop tells the compiler so.
  while (true) ::syscall(SYS_exit_group, kExitCannotExecute);
}

// Runs in the child: says what failed, and ends it.
[[noreturn]] void give_up(std::string_view what, std::string_view why) {
  for (const auto text : {what, why, std::string_view("\n")}) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  }
  end_child();
}

// Runs in the child between fork and exec. Other threads of the parent may have held locks then, so
// it makes async-signal-safe calls only.
[[noreturn]] void become(char* const* arguments, int output, const ChildOptions& options,
                         pid_t parent) {
  if (options.has_own_group) ::setpgid(0, 0);
  // Without this a child would train on when its launcher was killed. The kernel sends the signal
  // once for each thread of the parent, as they end one after the other. So it is not SIGTERM, of
  // which a second one means haste.
  ::prctl(PR_SET_PDEATHSIG, SIGHUP);
  if (::getppid() != parent) end_child();  // it died before the line above
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::signal(signal, SIG_DFL);  // not the parent's handlers, nor its nohup
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (output >= 0) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
  }
  if (options.network_namespace != kSameNetwork &&
      ::setns(options.network_namespace, CLONE_NEWNET) != 0) {
    give_up("the network namespace cannot be entered", "");
  }
  ::execvp(arguments[0], arguments);
  give_up(arguments[0], errno == ENOENT ? ": there is no such program" : ": cannot be executed");
}

int open_output(const std::filesystem::path& file) {
  const int output =
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0644);
  if (output >= 0) return output;
  throw DataError(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
}

}  // namespace

ChildProcess::ChildProcess(const std::filesystem::path& program,
                           const std::vector<std::string>& arguments, const ChildOptions& options) {
  // All that the child needs is allocated before the fork: after it the child may not allocate.
  std::vector<std::string> all{program.string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const int output = options.output_file.empty() ? -1 : open_output(options.output_file);
  // The child compares it with its own parent, to notice that this process died meanwhile.
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(pointers.data(), output, options, parent);
  const int error = errno;
  if (output >= 0) ::close(output);
  FARSTEP_CHECK(pid_ > 0, "{} cannot be started: {}", program.string(), std::strerror(error));
  // A descriptor, so that a launcher can wait for many children and for signals in one poll().
  pid_descriptor_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

ChildProcess::~ChildProcess() {
  if (!exit_code()) {
    // The wait is short: no process can refuse SIGKILL. Without it a zombie would stay.
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (pid_descriptor_ >= 0) ::close(pid_descriptor_);
}

std::optional<int> ChildProcess::exit_code() {
  int status = 0;
  // The first call after the end reaps the child. Its number may then name a stranger, so nothing
  // asks for it again.
  if (!exit_code_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return exit_code_;
}

void ChildProcess::send_signal(int signal) {
  // Not to a child that has been reaped: the signal could reach another process.
  if (!exit_code()) ::kill(pid_, signal);
}

}  // namespace farstep
