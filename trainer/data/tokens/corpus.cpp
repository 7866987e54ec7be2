// Text is cut into pieces that threads encode apart. A piece ends only where the tokenizer allows a
// cut, so the tokens are those of the whole text.
#include "trainer/data/tokens/corpus.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// A piece is large enough for its cost beside the encoding, and small enough to keep all threads
// busy.
constexpr std::size_t kPieceBytes = std::size_t{1} << 16;
constexpr std::size_t kPieceSlack = kPieceBytes / 4;
constexpr double kTrainingBytes = 1 << 25;  // enough for the pairs of a vocabulary; bounds the time
constexpr std::size_t kLongestLine = 4192;  // SentencePiece ignores longer lines
constexpr std::size_t kLineSlack = 192;

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
  const int64_t documents = count_documents(file.path, file.kind, rules.stop);
  // The last documents validate: so both splits have a part of each large source.
  const auto trained =
      documents - validating(rules.validation_fraction, rules.documents_before, documents);
  TextSource source(file.path, file.kind, rules.field);
  for (int64_t index = source.skip(from.documents); const auto document = source.next(); ++index) {
    if (document->fault != TextFault::kNone) {
      rules.take_fault(*document);
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

// Returns where the part of a text begins that validates.
std::size_t place_of_validation(std::string_view text, bool cuts, const TextRules& rules) {
  if (!cuts) {
    const bool validates = validating(rules.validation_fraction, rules.documents_before, 1) > 0;
    return validates ? 0 : text.size();
  }
  const auto part = static_cast<std::size_t>(
      std::ceil(static_cast<double>(text.size()) * rules.validation_fraction));
  const auto place = text.size() - part;
  // Half of the part may be given up for a clean cut.
  return place > 0 ? cut_near(text, place, part / 2) : place;
}

// The end of a text that is cut is the validation part. The cut moves to a blank line if one is
// near.
int64_t one_document(const InputFile& file, const TextRules& rules,
                     const std::function<void(TextPiece)>& take, const TextPlace& from) {
  if (from.documents > 0) return 1;
  const auto document = TextSource(file.path, file.kind).next();
  if (!document) return 0;
  if (document->fault != TextFault::kNone) {
    rules.take_fault(*document);
    return 1;
  }
  const std::string_view text = document->text;
  const auto cut = place_of_validation(text, is_cut(file, rules), rules);
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

int64_t validating(double fraction, int64_t before, int64_t count) {
  const auto up_to = [&](int64_t units) {
    // Less than a unit's rounding in fp64, so that 5 % of 100 are 5.
    constexpr double kRounding = 1e-6;
    return static_cast<int64_t>(std::ceil(fraction * static_cast<double>(units) - kRounding));
  };
  return up_to(before + count) - up_to(before);
}

bool is_cut(const InputFile& file, const TextRules& rules) {
  constexpr double kLeastPartBytes = 100;
  if (file.kind != FileKind::kText || rules.validation_fraction == 0) return false;
  const auto bytes = static_cast<double>(file.bytes);
  const bool is_only = file.bytes >= rules.text_bytes;
  return is_only || (bytes > rules.validation_fraction * static_cast<double>(rules.text_bytes) &&
                     bytes * rules.validation_fraction >= kLeastPartBytes);
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
      source_.emplace(file.path, file.kind, field_);
      budget_ = static_cast<std::size_t>(budget_per_byte_ * static_cast<double>(file.bytes));
    }
    if (auto document = budget_ > 0 ? source_->next() : std::nullopt) {
      if (document->fault != TextFault::kNone) continue;  // tokenize() names it, or leaves it out
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
  return file.kind == FileKind::kText ? one_document(file, rules, take, from)
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
