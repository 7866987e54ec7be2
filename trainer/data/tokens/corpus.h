// The text of a dataset: the part of it that is for validation, and the pieces in which it is
// encoded. Results do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/fields.h"
#include "trainer/data/documents/text_source.h"
#include "trainer/data/tokens/input_files.h"

namespace farstep {

// The lines on which a vocabulary is trained: the beginning of each file, in proportion to its
// size, 32 MiB in all, without documents that have a fault. One thread uses it.
class TrainingLines {
 public:
  // `files` must outlive this; `field` is TextSource's.
  TrainingLines(const std::vector<InputFile>& files, std::string field);
  // Returns the next line without its end, at most 4192 bytes; nullopt after the last. Throws
  // DataError.
  std::optional<std::string> operator()();

 private:
  bool next_document();

  const std::vector<InputFile>& files_;
  const std::string field_;
  double budget_per_byte_;
  std::size_t next_file_ = 0;
  std::optional<TextSource> source_;
  std::size_t budget_ = 0;  // bytes of text left for the current file
  std::string document_;
  std::string_view rest_;  // of document_
};

// A place in a file between two pieces.
struct TextPlace {
  int64_t documents = 0;  // before it, with a fault or empty ones included
  int64_t pieces = 0;     // of the document that follows

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("documents", documents, "documents that are done", at_least(0));
    visit("pieces", pieces, "pieces of the next one that are done", at_least(0));
  }
};

struct TextPiece {
  std::string text;
  bool validation = false;
  bool begins_document = false, ends_document = false;
  double file_share = 0;  // share of the file up to the end of this piece
  TextPlace end;
};

// How the text of files is taken.
struct TextRules {
  double validation_fraction = 0;
  int64_t documents_before = 0;  // in other files, without texts that are cut
  int64_t text_bytes = 0;        // of all files of the kind text, as they lie on the disk
  std::string field = "text";    // TextSource's
  // Whether a document may be cut at a place of it, between two characters.
  std::function<bool(std::string_view text, std::size_t place)> may_cut;
  // Gets what is wrong with a document that is left out, with its place in the file.
  std::function<void(const Document& document)> take_fault;
  std::stop_token stop = {};
};

// Returns how many of `count` units validate, of which `before` come before: over all units of the
// whole input it is `fraction` of them, rounded up.
int64_t validating(double fraction, int64_t before, int64_t count);

// Whether the file is a text of which a part at the end validates. It is larger than the whole
// share, so that it would be too much as a document; the part is not a word or two, but for the
// only text.
bool is_cut(const InputFile& file, const TextRules& rules);

// Passes the file's text to `take` in order, in pieces within one document: of 48 to 80 KiB, or
// larger where it may not be cut. The last documents of the file validate, as many as validating()
// says. A text that is_cut() is cut by bytes into two documents. Leaves out empty documents and
// those with a fault. Begins at the place `from`. Returns the number of the file's documents, the
// empty ones included. Throws DataError for a file that cannot be read to its end; Stopped if
// `rules.stop` is requested while documents are counted.
int64_t for_each_piece(const InputFile& file, const TextRules& rules,
                       const std::function<void(TextPiece)>& take, const TextPlace& from = {});

// Returns where to cut `text` within `slack` bytes of `place`: after the nearest blank line, else
// after the nearest newline, else before the nearest space, else between two characters. For
// `place` in [1, text.size()] the result is in that range too.
std::size_t cut_near(std::string_view text, std::size_t place, std::size_t slack);

}  // namespace farstep
