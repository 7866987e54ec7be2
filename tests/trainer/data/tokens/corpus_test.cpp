#include "trainer/data/tokens/corpus.h"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/tokens/sample_text.h"
#include "trainer/config/json_fields.h"

namespace farstep {

namespace {

struct Split {
  std::vector<std::string> train, validation;  // documents
  std::size_t longest_piece = 0;
};

TextRules rules_of(double fraction) {
  return {.validation_fraction = fraction,
          .may_cut = [](std::string_view text, std::size_t place) { return text[place] == ' '; },
          .take_fault = [](const Document& document) { FAIL(document.what); }};
}

// The files below a folder, with their kinds.
std::vector<InputFile> files_in(const std::string& folder) {
  auto files = list_input_files({folder});
  find_kinds(files, UnknownFiles::kRefuse, false);
  return files;
}

Split split(const std::filesystem::path& path, double fraction) {
  Split result;
  std::string document;
  double share = 0;
  for_each_piece(files_in(path.string()).at(0), rules_of(fraction), [&](const TextPiece& piece) {
    CHECK_FALSE(piece.text.empty());
    CHECK(piece.begins_document == document.empty());
    CHECK((piece.file_share >= share && piece.file_share <= 1));
    share = piece.file_share;
    result.longest_piece = std::max(result.longest_piece, piece.text.size());
    document += piece.text;
    if (!piece.ends_document) return;
    (piece.validation ? result.validation : result.train).push_back(document);
    document.clear();
  });
  CHECK(document.empty());
  return result;
}

}  // namespace

TEST_CASE("a cut prefers blank lines to newlines to spaces") {
  CHECK(cut_near("aa bb\ncc\n\ndd", 3, 10) == 10);
  CHECK(cut_near("aa bb\ncc\n\ndd", 3, 4) == 6);
  CHECK(cut_near("aa bb\ncc\n\ndd", 3, 2) == 2);
  CHECK(cut_near("a\n\nb\n\nc", 4, 7) == 3);
  CHECK(cut_near("aaaa", 2, 1) == 2);
  CHECK(cut_near("a\u00e9\u00e9", 2, 1) == 1);
  CHECK(cut_near("\x80\x80\x80", 2, 0) == 2);
  CHECK(cut_near("a", 1, 100) == 1);
}

TEST_CASE("the pieces of a text are the text") {
  TemporaryFolder folder;
  const auto path = folder / "a.txt";
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{500}, std::size_t{400000}}) {
    const auto text = sample_text(bytes, 7);
    write_file(path, text);
    for (const double fraction : {0.0, 0.05, 0.5}) {
      const auto parts = split(path, fraction);
      std::string all;
      for (const auto& document : parts.train) all += document;
      if (fraction > 0 && bytes > 1) {
        REQUIRE(parts.validation.size() == 1);
        const auto held_back = static_cast<double>(parts.validation[0].size());
        CHECK(held_back == Approx(fraction * static_cast<double>(text.size())).epsilon(0.51));
        if (bytes > 1000) CHECK(all.ends_with("\n\n"));
        all += parts.validation[0];
      } else if (fraction == 0) {
        CHECK(parts.validation.empty());
      }
      CHECK(parts.longest_piece <= 80 * 1024);
      if (bytes > 1) CHECK(all == text);
    }
  }
}

TEST_CASE("a text without line ends is cut between words") {
  TemporaryFolder folder;
  auto text = sample_text(300000, 8);
  std::replace(text.begin(), text.end(), '\n', ' ');
  write_file(folder / "a.txt", text);
  for_each_piece({.path = folder / "a.txt", .bytes = static_cast<int64_t>(text.size())},
                 rules_of(0), [&](const TextPiece& piece) {
                   if (!piece.begins_document) CHECK(piece.text[0] == ' ');
                 });
}

TEST_CASE("a text that may be cut nowhere, or at one far place, stays whole so far") {
  TemporaryFolder folder;
  const auto path = folder / "a.txt";
  for (const std::size_t place : {std::size_t{200'000}, std::size_t{0}}) {
    std::string text(300'000, 'x');
    if (place > 0) text[place] = ' ';
    write_file(path, text);
    std::vector<std::size_t> sizes;
    for_each_piece({.path = path, .bytes = 300'000}, rules_of(0),
                   [&](const TextPiece& piece) { sizes.push_back(piece.text.size()); });
    CHECK(sizes.at(0) == (place > 0 ? place : text.size()));
  }
}

TEST_CASE("documents with a fault are named and left out") {
  TemporaryFolder folder;
  write_file(folder / "a.jsonl", "{\"text\": \"one\"}\nnone\n{\"text\": \"two\"}\n");
  write_file(folder / "b.txt", "\xff");
  std::string texts, faults;
  auto rules = rules_of(0);
  rules.take_fault = [&](const Document& document) { faults += document.what.substr(0, 6) + ";"; };
  for (const auto& file : files_in(folder.path().string())) {
    for_each_piece(file, rules, [&](const TextPiece& piece) { texts += piece.text + ";"; });
  }
  CHECK(texts == "one;two;");
  CHECK(faults == "line 2;byte 0;");
}

TEST_CASE("JSONL is split by documents") {
  TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 10; ++i) lines += fmt::format("{{\"text\": \"document {}\"}}\n", i);
  lines += "{\"text\": \"\"}\n";
  write_file(folder / "a.jsonl", lines);
  const auto parts = split(folder / "a.jsonl", 0.27);  // of 11, the last of which is empty
  CHECK(parts.train.size() == 8);
  CHECK(parts.validation == std::vector<std::string>{"document 8", "document 9"});
  write_file(folder / "blank.jsonl", "\n\n");
  CHECK(split(folder / "blank.jsonl", 0.3).train.empty());
}

TEST_CASE("a share is that of all units, however they lie in files") {
  for (const double fraction : {0.0, 0.05, 0.1, 0.3}) {
    for (const int64_t in_file : {int64_t{1}, int64_t{9}, int64_t{100}}) {
      int64_t before = 0, held_back = 0;
      for (; before < 4500; before += in_file) held_back += validating(fraction, before, in_file);
      CHECK(held_back == std::llround(std::ceil(fraction * static_cast<double>(before) - 1e-6)));
    }
  }
  CHECK(validating(0.05, 0, 10) == 1);  // never none
  CHECK(validating(0.05, 0, 100) == 5);
}

TEST_CASE("a small text validates as a whole or not at all, and a large one is cut") {
  auto rules = rules_of(0.05);
  rules.text_bytes = 1'000'000;
  const auto cut = [&](int64_t bytes) { return is_cut({.path = "a.txt", .bytes = bytes}, rules); };
  CHECK(cut(60'000));
  CHECK_FALSE(cut(50'000));
  rules.text_bytes = 3'000;  // a part of less than 100 bytes is no text
  CHECK_FALSE(cut(1'000));
  CHECK(cut(3'000));
  rules.text_bytes = 30;  // the only one
  CHECK(cut(30));
  CHECK_FALSE(is_cut({.path = "a", .bytes = 30, .kind = FileKind::kJsonLines}, rules));
}

TEST_CASE("a vocabulary is trained on the lines of all files") {
  TemporaryFolder folder;
  write_file(folder / "a.txt", "one\n\ntwo\n");
  write_file(folder / "b.jsonl", "{\"text\": \"three\\nfour\"}\n{\"text\": \"five\"}\n");
  write_file(folder / "c.txt", std::string(10000, 'x'));
  const auto files = files_in(folder.path().string());
  TrainingLines lines(files, "text");
  std::vector<std::string> all;
  std::size_t longest = 0, xs = 0;
  while (auto line = lines()) {
    longest = std::max(longest, line->size());
    if (line->starts_with('x')) {
      xs += line->size();
    } else if (!line->empty()) {
      all.push_back(*line);
    }
  }
  CHECK(all == std::vector<std::string>{"one", "two", "three", "four", "five"});
  CHECK(xs == 10000);
  CHECK(longest <= 4192);
}

TEST_CASE("the pieces from a place on are those that follow it") {
  TemporaryFolder folder;
  std::string lines;
  for (uint32_t i = 0; i < 12; ++i) {
    lines += Json{{"text", sample_text(i == 5 ? 200'000 : 100 * (i % 3), i)}}.dump() + "\n";
  }
  write_file(folder / "a.jsonl", lines + "none\n");
  write_file(folder / "a.txt", sample_text(400'000, 1));
  for (const auto* name : {"a.jsonl", "a.txt"}) {
    const auto file = files_in((folder / name).string()).at(0);
    auto rules = rules_of(0.3);
    rules.take_fault = [](const Document&) {};
    const auto pieces_from = [&](const TextPlace& from) {
      std::vector<TextPiece> pieces;
      for_each_piece(
          file, rules, [&](TextPiece piece) { pieces.push_back(std::move(piece)); }, from);
      return pieces;
    };
    const auto all = pieces_from({});
    REQUIRE(all.size() > 5);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto rest = pieces_from(all[i].end);
      REQUIRE(rest.size() == all.size() - i - 1);
      for (std::size_t k = 0; k < rest.size(); ++k) {
        const auto& expected = all[i + 1 + k];
        CHECK((rest[k].text == expected.text && rest[k].validation == expected.validation));
        CHECK(rest[k].begins_document == expected.begins_document);
        CHECK(rest[k].ends_document == expected.ends_document);
      }
    }
  }
}

}  // namespace farstep
