// A program started as a child. It gets SIGHUP when its parent ends, once or several times.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace farstep {

inline constexpr int kSameNetwork = -1;

struct ChildOptions {
  // Where both outputs of the child go, a file that is replaced; empty: to the parent's.
  std::filesystem::path output_file = {};
  // With a process group of its own only the parent hears of Ctrl-C, and can pass it on.
  bool has_own_group = true;
  // Descriptor of the network namespace that the child is put into.
  int network_namespace = kSameNetwork;
};

class ChildProcess {
 public:
  // Starts `program`, which is looked up in PATH if it is a name without a slash. The child blocks
  // and handles no signal. It ends with exit code 127, and says why, if the program cannot be
  // executed or the namespace cannot be entered. Throws InternalError if there can be no child,
  // DataError if the file cannot be written.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const ChildOptions& options = {});
  // Ends the child (SIGKILL) if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The exit code once the child has ended (128 + the signal that killed it), else nothing.
  std::optional<int> exit_code();
  void send_signal(int signal);
  // Readable in poll(2) when the child has ended.
  int poll_descriptor() const { return pid_descriptor_; }

 private:
  pid_t pid_ = -1;
  int pid_descriptor_ = -1;
  std::optional<int> exit_code_;
};

}  // namespace farstep
