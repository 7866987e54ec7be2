// A program started as a child: it dies with its parent, has a process group of its own (so that
// only the parent passes Ctrl-C on), and writes both its outputs to a file.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace farstep {

inline constexpr int kSameNetwork = -1;

class ChildProcess {
 public:
  // Starts `program` with `arguments`; its output goes to `output_file`, replaced. With a
  // descriptor of a network namespace the child is put into that one (it ends with exit code 127 if
  // it may not). Throws InternalError if it cannot be started, DataError if the file cannot be
  // written.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const std::filesystem::path& output_file, int network_namespace = kSameNetwork);
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
