// A Parquet file, whose column "text" is read, and read again from a row in its middle.

#include "trainer/data/parquet/parquet_text.h"

#include <algorithm>

#include "tests/fuzz/fuzz_input.h"

using namespace farstep;

namespace {

constexpr int64_t kMostRows = 4096;  // of a file that announces any number of them

// Reads rows and looks at each byte, which must be there.
int64_t read_rows(ParquetText& file) {
  std::optional<std::string> bytes;
  int64_t rows = 0;
  while (rows < kMostRows && file.next(bytes)) {
    ++rows;
    if (bytes && std::count(bytes->begin(), bytes->end(), '\0') > std::ssize(*bytes)) std::abort();
  }
  return rows;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto path = file_with(text_of(data, size));
  accept_or_refuse([&] {
    ParquetText whole(path, "text");
    const int64_t rows = read_rows(whole);
    if (whole.next_row() != rows || rows > whole.num_rows()) std::abort();
    ParquetText rest(path, "text");
    const int64_t skipped = rest.skip(rows / 2);
    if (skipped != rows / 2 || rest.next_row() != skipped) std::abort();
    read_rows(rest);
  });
  return 0;
}
