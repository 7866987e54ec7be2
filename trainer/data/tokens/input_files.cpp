#include "trainer/data/tokens/input_files.h"

#include <glob.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "trainer/base/error.h"
#include "trainer/data/documents/byte_reader.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

InputFile input_file(const fs::path& path, const std::string& folder = "") {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  const auto modified = error ? fs::file_time_type() : fs::last_write_time(path, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be read: {}", path.string(), error.message()));
  }
  return {path, static_cast<int64_t>(bytes),
          std::chrono::nanoseconds(modified.time_since_epoch()).count(), folder};
}

// Sorted, so that the dataset does not depend on the order in the file system.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(folder, error);
  for (; !error && entry != fs::end(entry); entry.increment(error)) {
    // Editors, version control and downloads leave hidden files and folders that are no text.
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (hidden && entry->is_directory(error)) entry.disable_recursion_pending();
    if (!hidden && entry->is_regular_file(error)) files.push_back(entry->path());
  }
  if (error || files.empty()) {
    throw DataError(fmt::format("{}: {}", folder.string(),
                                error ? error.message() : "no files in this folder"));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Returns what fits a pattern, in order of the names. A shell passes a pattern on that is in
// quotes; users quote one that fits more files than a command line takes.
std::vector<fs::path> names_like(const std::string& pattern) {
  ::glob_t found{};
  const int error = ::glob(pattern.c_str(), 0, nullptr, &found);
  const std::vector<fs::path> names(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (error != 0) throw DataError(fmt::format("{}: no file fits this pattern", pattern));
  return names;
}

// Whether a file says what a dataset's folder holds, as those have it that are cloned or saved.
bool describes_dataset(const fs::path& path) {
  const auto name = fs::path(lower_name(path));
  constexpr std::string_view kStems[] = {"readme", "license", "licence", "changelog"};
  constexpr std::string_view kNames[] = {"dataset_infos.json", "dataset_info.json",
                                         "dataset_dict.json", "state.json"};
  return std::ranges::find(kStems, name.stem().string()) != std::end(kStems) ||
         std::ranges::find(kNames, name.string()) != std::end(kNames);
}

// The folders whose texts are rows and lines, so that a README is none of them.
std::set<std::string> folders_of_records(const std::vector<InputFile>& files) {
  std::set<std::string> folders;
  for (const auto& file : files) {
    const bool is_record = file.kind == FileKind::kJsonLines || file.kind == FileKind::kParquet;
    if (is_record && !file.folder.empty() && !describes_dataset(file.path)) {
      folders.insert(file.folder);
    }
  }
  return folders;
}

constexpr std::size_t kMostNamed = 20;

// Throws DataError that names all that is refused.
void refuse(const std::vector<std::string>& refused) {
  if (refused.empty()) return;
  std::string text;
  for (std::size_t i = 0; i < std::min(refused.size(), kMostNamed); ++i) text += refused[i] + "\n";
  if (refused.size() > kMostNamed)
    text += fmt::format("and {} more\n", refused.size() - kMostNamed);
  throw DataError(fmt::format(
      "{}Kinds that are read: {}. --unknown-files leave_out goes on without the others; text or "
      "json_lines reads them as such, where they can be that",
      text, known_kinds()));
}

// Logs what is left out.
void warn_of(const std::vector<std::string>& left_out) {
  for (std::size_t i = 0; i < std::min(left_out.size(), kMostNamed); ++i) {
    spdlog::warn("left out: {}", left_out[i]);
  }
  if (left_out.size() > kMostNamed) {
    spdlog::warn("left out: {} files more", left_out.size() - kMostNamed);
  }
}

}  // namespace

std::vector<InputFile> list_input_files(const std::vector<std::string>& inputs) {
  std::vector<InputFile> files;
  for (const auto& input : inputs) {
    std::error_code none;  // a path that is not a folder must be a file, which input_file() checks
    const bool is_pattern = !fs::exists(input, none) && input.find_first_of("*?[") != input.npos;
    for (const auto& name : is_pattern ? names_like(input) : std::vector<fs::path>{input}) {
      if (!fs::is_directory(name, none)) {
        files.push_back(input_file(name));
        continue;
      }
      for (const auto& path : files_below(name)) {
        files.push_back(input_file(path, name.string()));
      }
    }
  }
  return files;
}

void find_kinds(std::vector<InputFile>& files, UnknownFiles unknown, bool token_files) {
  std::vector<FileForm> forms;
  for (auto& file : files) {
    auto form = form_of(file.path);
    if (form.kind == FileKind::kTokens && !token_files) {
      form = {FileKind::kUnknown, "ids of tokens, by its name; --token-files reads them", false};
    }
    file.kind = form.kind;
    forms.push_back(std::move(form));
  }
  const auto folders = folders_of_records(files);
  std::vector<InputFile> taken;
  std::vector<std::string> refused, left_out;
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto& file = files[i];
    const auto named = [&](std::string_view why) {
      return fmt::format("{}: {}", file.path.string(), why);
    };
    if (folders.contains(file.folder) && describes_dataset(file.path)) {
      left_out.push_back(named("says what the folder has; name the file to read it"));
      continue;
    }
    if (file.kind == FileKind::kUnknown) {
      if (unknown == UnknownFiles::kLeaveOut) {
        left_out.push_back(named(forms[i].why));
        continue;
      }
      if (unknown == UnknownFiles::kRefuse || !forms[i].may_be_text) {
        refused.push_back(named(forms[i].why));
        continue;
      }
      file.kind = unknown == UnknownFiles::kText ? FileKind::kText : FileKind::kJsonLines;
    }
    taken.push_back(std::move(file));
  }
  refuse(refused);
  warn_of(left_out);
  files = std::move(taken);
}

}  // namespace farstep
