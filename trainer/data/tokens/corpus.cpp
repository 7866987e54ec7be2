// Text is cut into pieces that threads encode apart. A piece ends only where the tokenizer allows a
// cut, so the tokens are those of the whole text.
#include "trainer/data/tokens/corpus.h"

#include <glob.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

// A piece is large enough for its cost beside the encoding, and small enough to keep all threads
// busy.
constexpr std::size_t kPieceBytes = std::size_t{1} << 16;
constexpr std::size_t kPieceSlack = kPieceBytes / 4;
constexpr double kTrainingBytes = 1 << 25;  // enough for the pairs of a vocabulary; bounds the time
constexpr std::size_t kLongestLine = 4192;  // SentencePiece ignores longer lines
constexpr std::size_t kLineSlack = 192;

InputFile input_file(const fs::path& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  const auto modified = error ? fs::file_time_type() : fs::last_write_time(path, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be read: {}", path.string(), error.message()));
  }
  return {path, static_cast<int64_t>(bytes),
          std::chrono::nanoseconds(modified.time_since_epoch()).count()};
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

// Returns where to end a piece of a long text: at the place nearest to kPieceBytes that may be cut.
std::size_t piece_end(std::string_view text, const TextRules& rules) {
  const auto may_end = [&](std::size_t place) {
    return place < text.size() && (text[place] & 0xc0) != 0x80 && rules.may_cut(text, place);
  };
  for (std::size_t distance = 0; distance <= kPieceSlack; ++distance) {
    if (may_end(kPieceBytes + distance)) return kPieceBytes + distance;
    if (may_end(kPieceBytes - distance)) return kPieceBytes - distance;
  }
  auto place = kPieceBytes + kPieceSlack;
  while (place < text.size() && !may_end(place)) ++place;
  return place;
}

// Removes the next piece from the beginning of `text` and returns it.
std::string_view take_piece(std::string_view& text, const TextRules& rules) {
  const auto size = text.size() <= kPieceBytes + kPieceSlack ? text.size() : piece_end(text, rules);
  const auto piece = text.substr(0, size);
  text.remove_prefix(size);
  return piece;
}

// Counts the documents first, because the validation part is their last share.
int64_t many_documents(const InputFile& file, const TextRules& rules,
                       const std::function<void(TextPiece)>& take, const TextPlace& from) {
  const int64_t documents = count_documents(file.path, rules.stop);
  // The last documents validate, in every file: so both splits have a part of each source.
  const auto trained =
      std::llround(static_cast<double>(documents) * (1 - rules.validation_fraction));
  TextSource source(file.path, rules.field);
  for (int64_t index = source.skip(from.documents); const auto document = source.next(); ++index) {
    if (!document->fault.empty()) {
      rules.take_fault(document->fault);
      continue;
    }
    const double share =
        static_cast<double>(source.file_bytes_read()) / static_cast<double>(file.bytes);
    int64_t pieces = 0;
    for (std::string_view rest = document->text; !rest.empty();) {
      const auto piece = take_piece(rest, rules);
      const bool begins = pieces++ == 0;
      if (index == from.documents && pieces <= from.pieces) continue;
      const auto end = rest.empty() ? TextPlace{index + 1, 0} : TextPlace{index, pieces};
      take({std::string(piece), index >= trained, begins, rest.empty(), share, end});
    }
  }
  return documents;
}

// The end of the text is the validation part. The cut moves to a blank line if one is near.
int64_t one_document(const InputFile& file, const TextRules& rules,
                     const std::function<void(TextPiece)>& take, const TextPlace& from) {
  if (from.documents > 0) return 1;
  const auto document = TextSource(file.path).next();
  if (!document) return 0;
  if (!document->fault.empty()) {
    rules.take_fault(document->fault);
    return 1;
  }
  const std::string_view text = document->text;
  const auto held_back = static_cast<std::size_t>(
      std::ceil(static_cast<double>(text.size()) * rules.validation_fraction));
  std::size_t cut = text.size() - held_back;
  // Half of the part may be given up for a clean cut.
  if (held_back > 0 && cut > 0) cut = cut_near(text, cut, held_back / 2);
  std::size_t done = 0;
  int64_t pieces = 0;
  for (auto part : {text.substr(0, cut), text.substr(cut)}) {
    const bool validation = done == cut;
    for (bool begins = true; !part.empty(); begins = false) {
      const auto piece = take_piece(part, rules);
      done += piece.size();
      if (++pieces <= from.pieces) continue;
      const auto end = done == text.size() ? TextPlace{1, 0} : TextPlace{0, pieces};
      take({std::string(piece), validation, begins, part.empty(),
            static_cast<double>(done) / static_cast<double>(text.size()), end});
    }
  }
  return 1;
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
      for (const auto& path : files_below(name)) files.push_back(input_file(path));
    }
  }
  return files;
}

TrainingLines::TrainingLines(const std::vector<InputFile>& files, std::string field)
    : files_(files), field_(std::move(field)) {
  double total_bytes = 1;
  for (const auto& file : files) total_bytes += static_cast<double>(file.bytes);
  // Each file gives the same share of its text, from its beginning, so that it counts by its size.
  budget_per_byte_ = kTrainingBytes / total_bytes;
}

std::optional<std::string> TrainingLines::operator()() {
  while (rest_.empty()) {
    if (!next_document()) return std::nullopt;
  }
  auto end = std::min(rest_.find('\n'), rest_.size());
  if (end > kLongestLine) end = cut_near(rest_, kLongestLine - kLineSlack, kLineSlack);
  const std::string line(rest_.substr(0, end));
  // The line's end is no part of the line: SentencePiece takes lines without it.
  if (rest_.substr(end).starts_with('\n')) ++end;
  rest_.remove_prefix(end);
  return line;
}

// Sets rest_ to the next document, cut to the file's budget; returns false after the last.
bool TrainingLines::next_document() {
  while (true) {
    if (!source_) {
      if (next_file_ == files_.size()) return false;
      const auto& file = files_[next_file_++];
      source_.emplace(file.path, field_);
      budget_ = static_cast<std::size_t>(budget_per_byte_ * static_cast<double>(file.bytes));
    }
    if (auto document = budget_ > 0 ? source_->next() : std::nullopt) {
      if (!document->fault.empty()) continue;  // tokenize() names it, or leaves it out
      document_ = std::move(document->text);
      rest_ = document_;
      if (rest_.size() > budget_) rest_ = rest_.substr(0, cut_near(rest_, budget_, kPieceSlack));
      // At 0 the file is done; the next call opens the next one.
      budget_ -= std::min(budget_, rest_.size());
      return true;
    }
    source_.reset();
  }
}

int64_t for_each_piece(const InputFile& file, const TextRules& rules,
                       const std::function<void(TextPiece)>& take, const TextPlace& from) {
  return is_one_document(file.path) ? one_document(file, rules, take, from)
                                    : many_documents(file, rules, take, from);
}

// Boundaries are tried from best to worst; of the best kind that occurs, the nearest one wins.
std::size_t cut_near(std::string_view text, std::size_t place, std::size_t slack) {
  using Boundary = bool (*)(std::string_view before, std::string_view after);
  constexpr Boundary kBoundaries[] = {
      [](auto before, auto) { return before.ends_with("\n\n"); },
      [](auto before, auto) { return before.ends_with('\n'); },
      [](auto, auto after) { return after.starts_with(' '); },
      [](auto, auto after) { return after.empty() || (after[0] & 0xc0) != 0x80; },
  };
  for (const auto is_boundary : kBoundaries) {
    for (std::size_t distance = 0; distance <= slack; ++distance) {
      const std::size_t below = place > distance ? place - distance : place;
      const std::size_t above = std::min(place + distance, text.size());
      for (const std::size_t cut : {below, above}) {
        if (is_boundary(text.substr(0, cut), text.substr(cut))) return cut;
      }
    }
  }
  return place;
}

}  // namespace farstep
