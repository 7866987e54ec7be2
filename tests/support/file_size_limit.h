// Limits the size of files while it lives, as if the disk were full. The limit is the whole
// process's: only one at a time, and no other thread may write files meanwhile.
#pragma once

#include <sys/resource.h>

namespace farstep {

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes);
  ~FileSizeLimit();
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*const handler_)(int);
  rlimit before_{};
};

}  // namespace farstep
