// The kinds of error that Farstep throws, their exit codes, and a macro that checks invariants.
//
// The kind says what the reader of the message can do: correct the configuration, replace a file,
// check a peer or its link, train with other settings, or report a bug. `main` maps kinds to exit
// codes. Only the training loop and `Worker` catch errors too.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace farstep {

enum class ErrorKind { kInternal = 1, kConfig = 2, kData = 3, kPeer = 4, kDivergence = 5 };

// The exit code of a process that ended after a signal: 128 + SIGINT, as in shells.
inline constexpr int kExitInterrupted = 130;

// What an exit code means, and what to do about it, for help and documents.
struct ExitCode {
  int code;
  std::string_view meaning, remedy;
};

// Returns every exit code of the program, in ascending order.
std::span<const ExitCode> exit_codes();

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  // Returns the process exit code of this kind, which exit_codes() explains.
  int exit_code() const { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

// A wrong configuration or argument; the message names the file and the JSON path.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(ErrorKind::kConfig, message) {}
};

// A wrong data or checkpoint file; the message names the file, and the offset if there is one.
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(ErrorKind::kData, message) {}
  // What is wrong at a byte of the file.
  DataError(const std::filesystem::path& path, std::size_t byte, const std::string& what)
      : DataError(fmt::format("{}: byte {}: {}", path.string(), byte, what)) {}
};

// A peer or its link failed; the message names the site. The transport that threw it must be
// destroyed, because its connections are in an unknown state.
class PeerError : public Error {
 public:
  PeerError(std::string site, const std::string& message)
      : Error(ErrorKind::kPeer, message), site_(std::move(site)) {}
  // Returns the name of the lost site; empty for the coordinator and if unknown.
  const std::string& site() const { return site_; }

 private:
  std::string site_;
};

// The coordinator has not answered in time, or other sites have not come: this site has not joined.
class NotJoinedError : public PeerError {
 public:
  explicit NotJoinedError(const std::string& message) : PeerError("", message) {}
};

// This site counts as lost, and the others go on without it. It can take their state and join
// again, as a new process could.
class LeftBehindError : public PeerError {
 public:
  explicit LeftBehindError(const std::string& message) : PeerError("", message) {}
};

// The same for a site whose state is not that of the run any more, so that no checkpoint may have
// it.
class StaleStateError : public LeftBehindError {
 public:
  using LeftBehindError::LeftBehindError;
};

// A loss, gradient or delta that is not finite, or a loss that rises too far.
class DivergenceError : public Error {
 public:
  explicit DivergenceError(const std::string& message) : Error(ErrorKind::kDivergence, message) {}
};

// A broken invariant, which is a bug in Farstep.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(ErrorKind::kInternal, message) {}
};

namespace detail {
[[noreturn]] void throw_check_failed(const char* file, int line, const char* condition,
                                     const std::string& message);
}  // namespace detail

}  // namespace farstep

// Throws InternalError with file, line, condition and a formatted message unless the condition
// holds.
#define FARSTEP_CHECK(condition, ...)                                       \
  do {                                                                      \
    if (!(condition)) {                                                     \
      ::farstep::detail::throw_check_failed(__FILE__, __LINE__, #condition, \
                                            ::fmt::format(__VA_ARGS__));    \
    }                                                                       \
  } while (false)
