#include "trainer/data/images/idx_file.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/documents/byte_reader.h"

namespace farstep {

namespace {

// A header is 0, 0, the code of the values' type, and how many sides the shape has. Then come the
// sides, four bytes each, the highest first.
constexpr uint8_t kBytesCode = 8;
// More than any data set that fits into memory; a damaged header must not ask for 2^32 rows.
constexpr int64_t kMostValues = int64_t{1} << 32;

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : path_(path), bytes_(open_bytes(path)), most_bytes_(most_memory_bytes(path)) {}

  void read(std::span<uint8_t> bytes) {
    const std::span<char> out(reinterpret_cast<char*>(bytes.data()), bytes.size());
    if (bytes_->read(out) < out.size()) fail("is cut short");
  }
  // A small compressed file could fill all memory.
  void require_memory(int64_t bytes) const {
    if (!bytes_->is_compressed() || bytes <= most_bytes_) return;
    fail(
        fmt::format("decompressed, it takes {} MiB of memory, and a file of this size may take {} "
                    "MiB; decompress it before, if you trust it",
                    bytes >> 20, most_bytes_ >> 20));
  }
  // A file with more values than its shape is not what its name says.
  void require_end() {
    char more = 0;
    if (bytes_->read({&more, 1}) != 0) fail("goes on after the values of its shape");
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw DataError(fmt::format("{}: {}", path_.string(), message));
  }

 private:
  const std::filesystem::path path_;
  const std::unique_ptr<ByteReader> bytes_;
  const int64_t most_bytes_;
};

}  // namespace

IdxFile read_idx_file(const std::filesystem::path& path) {
  Reader reader(path);
  std::array<uint8_t, 4> header{};
  reader.read(header);
  if (header[0] != 0 || header[1] != 0 || header[2] != kBytesCode || header[3] == 0) {
    reader.fail("is not an IDX file of bytes");
  }
  IdxFile file;
  int64_t values = 1;
  for (int side = 0; side < header[3]; ++side) {
    std::array<uint8_t, 4> bytes{};
    reader.read(bytes);
    int64_t size = 0;
    for (const auto byte : bytes) size = size << 8 | byte;
    if (size != 0 && values > kMostValues / size) reader.fail("has a shape that no memory holds");
    values *= size;
    file.shape.push_back(size);
  }
  reader.require_memory(values);
  // In pieces, so that a damaged shape takes no more memory than the file has values.
  constexpr int64_t kPieceBytes = int64_t{1} << 24;
  for (int64_t done = 0; done < values;) {
    const int64_t piece = std::min(kPieceBytes, values - done);
    file.values.resize(static_cast<std::size_t>(done + piece));
    reader.read(std::span(file.values).subspan(static_cast<std::size_t>(done)));
    done += piece;
  }
  reader.require_end();
  return file;
}

LabelledImages read_idx_images(const std::filesystem::path& images,
                               const std::filesystem::path& labels) {
  auto pixels = read_idx_file(images);
  auto names = read_idx_file(labels);
  if (pixels.shape.size() != 3 || pixels.values.empty()) {
    throw DataError(fmt::format("{}: holds no images of one height and width", images.string()));
  }
  if (names.shape.size() != 1 || names.shape.front() != pixels.shape.front()) {
    throw DataError(fmt::format("{}: is not one label for each of the {} images of {}",
                                labels.string(), pixels.shape.front(), images.string()));
  }
  return {.shape = {.channels = 1, .height = pixels.shape[1], .width = pixels.shape[2]},
          .pixels = std::move(pixels.values),
          .labels = std::move(names.values)};
}

}  // namespace farstep
