// The texts of one column of a Parquet file, row by row.
//
// Memory holds a few pages of the column, whatever the size of the file. One thread uses a
// ParquetText.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "trainer/data/parquet/arrow_file.h"

namespace farstep {

// The module that reads such files; a build without Arrow's library has none.
inline constexpr const char* kParquetModule = "libfarstep_parquet.so";

class ParquetText {
 public:
  // Opens the file for its column `column`, of strings or bytes. Throws DataError if it cannot be
  // read, has no such column, or there is no `module`.
  ParquetText(const std::filesystem::path& path, const std::string& column,
              const char* module = kParquetModule);

  // Returns the rows of a file, without a look at its columns. Throws DataError.
  static int64_t count_rows(const std::filesystem::path& path);

  int64_t num_rows() const { return num_rows_; }
  // Returns the number of the row that is next, from 0.
  int64_t next_row() const { return next_row_; }
  // Reads the next row into `bytes`, which are not checked to be UTF-8; nullopt if the row is null.
  // Returns false after the last row. Throws DataError for a damaged file.
  bool next(std::optional<std::string>& bytes);
  // Skips the next rows, at most so many, and returns how many there were. Throws DataError.
  int64_t skip(int64_t most);

 private:
  std::filesystem::path path_;
  std::unique_ptr<ArrowFile> file_;
  int64_t num_rows_ = 0, next_row_ = 0;
};

}  // namespace farstep
