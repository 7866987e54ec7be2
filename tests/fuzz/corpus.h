// The seeds of all fuzz targets, a folder each.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/write_file.h"
#include "trainer/base/system/file.h"

namespace farstep {

class Corpus {
 public:
  explicit Corpus(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path folder(const std::string& target) const {
    make_folder(root_ / target);
    return root_ / target;
  }
  void add(const std::string& target, std::string_view seed) {
    write_file(folder(target) / fmt::format("seed-{:02}", seeds_++), seed);
  }

 private:
  const std::filesystem::path root_;
  int seeds_ = 0;
};

}  // namespace farstep
