// The files of a dataset's text: which they are, and of what kind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/documents/file_kind.h"

namespace farstep {

struct InputFile {
  std::filesystem::path path;
  int64_t bytes = 0;  // on the disk
  int64_t modified_ns = 0;
  std::string folder = "";  // the input below which it lies; empty if it was named itself
  FileKind kind = FileKind::kText;
};

// Returns the files among `inputs` in the given order, without their kinds. A folder stands for all
// files below it in order of their paths, except hidden ones; a pattern with *, ? or [ for all that
// it fits, likewise. Throws DataError for a name without files.
std::vector<InputFile> list_input_files(const std::vector<std::string>& inputs);

// What happens with a file whose kind is not known.
enum class UnknownFiles { kRefuse, kLeaveOut, kText, kJsonLines };

inline std::span<const std::string_view> enum_names(UnknownFiles) {
  static constexpr std::string_view kNames[] = {"refuse", "leave_out", "text", "json_lines"};
  return kNames;
}

// Looks at each file and sets its kind. Leaves out those of unknown kind if `unknown` says so, and
// what describes the datasets of a folder: README, LICENSE, dataset_infos.json. Warns of what it
// leaves out. `token_files`: whether ids of tokens are read. Throws DataError with a list of those
// that are refused, and of the kinds that are read.
void find_kinds(std::vector<InputFile>& files, UnknownFiles unknown, bool token_files);

}  // namespace farstep
