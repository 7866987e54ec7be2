// A machine of its own: what its /proc and /sys say.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"

namespace farstep {

class FakeMachine {
 public:
  // Writes a file below the root, as "proc/meminfo".
  void set(const std::string& path, const std::string& text) {
    const auto file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    write_file(file, text);
  }
  std::filesystem::path root() const { return root_.path(); }

 private:
  TemporaryFolder root_;
};

}  // namespace farstep
