// The text of a dataset: its files, the part of each that is for validation, and the pieces in
// which it is encoded. Results do not depend on the number of threads.
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
#include "trainer/data/tokens/text_source.h"

namespace farstep {

struct InputFile {
  std::filesystem::path path;
  int64_t bytes = 0;  // on the disk
  int64_t modified_ns = 0;
};

// Returns the files among `inputs` in the given order. A folder stands for all files below it in
// order of their paths, except hidden ones; a pattern with *, ? or [ for all that it fits,
// likewise. Throws DataError for a name without files.
std::vector<InputFile> list_input_files(const std::vector<std::string>& inputs);

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
  std::string field = "text";  // TextSource's
  // Whether a document may be cut at a place of it, between two characters.
  std::function<bool(std::string_view text, std::size_t place)> may_cut;
  // Gets what is wrong with a document that is left out, with its place in the file.
  std::function<void(const std::string& fault)> take_fault;
  std::stop_token stop = {};
};

// Passes the file's text to `take` in order, in pieces within one document: of 48 to 80 KiB, or
// larger where it may not be cut. The validation part is a block at the end of the file:
// `validation_fraction` of its documents. A file with one document is cut by bytes into two
// documents. Leaves out empty documents and those with a fault. Begins at the place `from`. Returns
// the number of the file's documents, the empty ones included. Throws DataError for a file that
// cannot be read to its end; Stopped if `rules.stop` is requested while documents are counted.
int64_t for_each_piece(const InputFile& file, const TextRules& rules,
                       const std::function<void(TextPiece)>& take, const TextPlace& from = {});

// Returns where to cut `text` within `slack` bytes of `place`: after the nearest blank line, else
// after the nearest newline, else before the nearest space, else between two characters. For
// `place` in [1, text.size()] the result is in that range too.
std::size_t cut_near(std::string_view text, std::size_t place, std::size_t slack);

}  // namespace farstep
