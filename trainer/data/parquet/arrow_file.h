// A Parquet file as Arrow's library reads it, in a module of its own, which the program loads when
// it meets such a file. So a program starts without Arrow, and one that was built without it
// differs in nothing else.
//
// Errors are std::exceptions, which do not name the file. One thread uses an ArrowFile.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace farstep {

class ArrowFile {
 public:
  virtual ~ArrowFile() = default;

  virtual int64_t num_rows() const = 0;
  // Chooses the column whose values are read, of strings or bytes.
  virtual void choose(std::string_view column) = 0;
  // Reads the value of the next row; there must be one. Returns false if it is null. `bytes` hold
  // until the next call.
  virtual bool read(std::string_view& bytes) = 0;
  // Skips so many rows; there must be as many.
  virtual void skip(int64_t rows) = 0;
};

// The module's one function, and its name there. Another interface gets another name.
using OpenArrowFile = void (*)(const char* path, std::unique_ptr<ArrowFile>& file);
inline constexpr const char* kOpenArrowFile = "farstep_open_arrow_file_1";

}  // namespace farstep
