#include "tests/support/file_size_limit.h"

#include <csignal>

namespace farstep {

// Without its signal, the write beyond the limit fails instead of ending the process.
FileSizeLimit::FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
  ::getrlimit(RLIMIT_FSIZE, &before_);
  const rlimit limit{bytes, before_.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

FileSizeLimit::~FileSizeLimit() {
  ::setrlimit(RLIMIT_FSIZE, &before_);
  std::signal(SIGXFSZ, handler_);
}

}  // namespace farstep
