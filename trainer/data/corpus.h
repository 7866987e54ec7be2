// The text that a dataset is made of: which files, which part of each is for validation, and in
// which pieces they are encoded. Nothing here depends on the number of threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/text_source.h"

namespace farstep {

struct InputFile {
  std::filesystem::path path;
  int64_t bytes = 0;  // on the disk
};

// The files among `inputs` as they are named, and for folders all files below them in the order of
// their paths, but for hidden ones. Throws DataError if there is nothing under a name.
std::vector<InputFile> list_input_files(const std::vector<std::string>& inputs);

// The lines that a vocabulary is trained on: of each file so much from its start as is its share of
// 32 MiB of text in all. Belongs to one thread.
class TrainingLines {
 public:
  // `files` must outlive this.
  explicit TrainingLines(const std::vector<InputFile>& files);
  // The next line without its end, at most 4192 bytes; nothing after the last. Throws DataError.
  std::optional<std::string> operator()();

 private:
  bool next_document();

  const std::vector<InputFile>& files_;
  double budget_per_byte_;
  std::size_t next_file_ = 0;
  std::optional<TextSource> source_;
  std::size_t budget_ = 0;  // bytes of text that the current file may still give
  std::string document_;
  std::string_view rest_;  // of document_
};

struct TextPiece {
  std::string text;
  bool validation = false;
  bool ends_document = false;
  double file_share = 0;  // share of the file that ends with this piece
};

// Hands the file's text to `take` in order, in pieces of at most 80 KiB that do not cross
// documents. The validation part is a block at the end of the file: so many of its documents, or of
// its bytes if the file is one document, which becomes two. Empty documents are left out. Throws
// DataError.
void for_each_piece(const InputFile& file, double validation_fraction,
                    const std::function<void(TextPiece)>& take);

// Where to cut `text` within `slack` bytes of `place`: after the nearest blank line, else after the
// nearest newline, else before the nearest space, else between two characters. For `place` in
// [1, text.size()] so is the result.
std::size_t cut_near(std::string_view text, std::size_t place, std::size_t slack);

}  // namespace farstep
