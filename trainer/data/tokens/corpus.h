// The text of a dataset: its files, the part of each that is for validation, and the pieces in
// which it is encoded. Results do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/tokens/text_source.h"

namespace farstep {

struct InputFile {
  std::filesystem::path path;
  int64_t bytes = 0;  // on the disk
};

// Returns the files among `inputs` in the given order. A folder stands for all files below it in
// order of their paths, except hidden ones. Throws DataError for a name without files.
std::vector<InputFile> list_input_files(const std::vector<std::string>& inputs);

// The lines on which a vocabulary is trained: the beginning of each file, in proportion to its
// size, 32 MiB in all. One thread uses it.
class TrainingLines {
 public:
  // `files` must outlive this.
  explicit TrainingLines(const std::vector<InputFile>& files);
  // Returns the next line without its end, at most 4192 bytes; nullopt after the last. Throws
  // DataError.
  std::optional<std::string> operator()();

 private:
  bool next_document();

  const std::vector<InputFile>& files_;
  double budget_per_byte_;
  std::size_t next_file_ = 0;
  std::optional<TextSource> source_;
  std::size_t budget_ = 0;  // bytes of text left for the current file
  std::string document_;
  std::string_view rest_;  // of document_
};

struct TextPiece {
  std::string text;
  bool validation = false;
  bool ends_document = false;
  double file_share = 0;  // share of the file up to the end of this piece
};

// Passes the file's text to `take` in order, in pieces of at most 80 KiB within one document. The
// validation part is a block at the end of the file: `validation_fraction` of its documents. A file
// with one document is cut by bytes into two documents. Leaves out empty documents. Throws
// DataError.
void for_each_piece(const InputFile& file, double validation_fraction,
                    const std::function<void(TextPiece)>& take);

// Returns where to cut `text` within `slack` bytes of `place`: after the nearest blank line, else
// after the nearest newline, else before the nearest space, else between two characters. For
// `place` in [1, text.size()] the result is in that range too.
std::size_t cut_near(std::string_view text, std::size_t place, std::size_t slack);

}  // namespace farstep
