// While it lives no file may grow beyond so many bytes, as if the disk were full. Of the whole
// process: one at a time, and no other thread may write files meanwhile.
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
