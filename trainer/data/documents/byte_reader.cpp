// Three readers of bytes, and above them one of text.
#include "trainer/data/documents/byte_reader.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

constexpr int64_t kLeastMemoryBytes = int64_t{64} << 20, kMemoryOfFile = 64;

constexpr std::string_view kGzipSuffixes[] = {".gz", ".gzip"};
constexpr std::string_view kZstdSuffixes[] = {".zst", ".zstd"};

// The words of a message that refuses so many bytes.
std::string out_of_proportion(int64_t bytes, int64_t most) {
  return fmt::format(
      "{} MiB of memory or more, and a file of this size may take {} MiB ({} times "
      "its own, at least {} MiB)",
      bytes >> 20, most >> 20, kMemoryOfFile, kLeastMemoryBytes >> 20);
}

[[noreturn]] void fail_to_open(const std::filesystem::path& path) {
  throw DataError(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
}

class PlainReader : public ByteReader {
 public:
  explicit PlainReader(const std::filesystem::path& path)
      : path_(path), in_(path, std::ios::binary) {
    if (!in_) fail_to_open(path_);
  }
  std::size_t read(std::span<char> out) override {
    in_.read(out.data(), static_cast<std::streamsize>(out.size()));
    if (in_.bad()) {
      throw DataError(path_, offset_, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    offset_ += in_.gcount();
    return static_cast<std::size_t>(in_.gcount());
  }
  int64_t file_offset() const override { return offset_; }
  bool is_compressed() const override { return false; }

 private:
  std::filesystem::path path_;
  std::ifstream in_;
  int64_t offset_ = 0;
};

class GzipReader : public ByteReader {
 public:
  explicit GzipReader(const std::filesystem::path& path)
      : path_(path), file_(::gzopen(path.c_str(), "rb"), &::gzclose) {
    if (!file_) fail_to_open(path_);
    ::gzbuffer(file_.get(), kBufferBytes);
  }
  std::size_t read(std::span<char> out) override {
    const int count = ::gzread(file_.get(), out.data(), static_cast<unsigned>(out.size()));
    // gzread() returns what came before an error, so its result alone does not show one.
    int error = Z_OK;
    const char* const what = ::gzerror(file_.get(), &error);
    if (error != Z_OK) {
      throw DataError(path_, file_offset(),
                      fmt::format("the gzip stream is {} ({})",
                                  error == Z_BUF_ERROR ? "truncated" : "corrupt", what));
    }
    return static_cast<std::size_t>(count);
  }
  // In the compressed file: progress is measured against its size, and errors name a place in it.
  int64_t file_offset() const override { return ::gzoffset(file_.get()); }
  bool is_compressed() const override { return true; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

// A file may consist of several frames, one after the other, as parallel compressors write them. It
// may end only between two of them. A frame says how much text its decoder must keep, its window:
// as much as zstd's own program takes with --long=31.
class ZstdReader : public ByteReader {
 public:
  explicit ZstdReader(const std::filesystem::path& path)
      : path_(path),
        file_(path),
        most_memory_bytes_(most_memory_bytes(path)),
        stream_(::ZSTD_createDStream(), &::ZSTD_freeDStream) {
    FARSTEP_CHECK(stream_ != nullptr, "no memory for a zstd stream");
    constexpr int kLongestWindow = sizeof(std::size_t) > 4 ? 31 : 30;  // logarithms of the format's
    ::ZSTD_DCtx_setParameter(stream_.get(), ::ZSTD_d_windowLogMax, kLongestWindow);
  }
  std::size_t read(std::span<char> out) override {
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos < output.size) {
      if (input_.pos == input_.size) {
        input_ = {compressed_.data(), file_.read(compressed_), 0};
        // The decoder may have output left without new input, so it is called once more at the end.
        if (input_.size == 0 && frame_done_) break;
      }
      const std::size_t before = output.pos;
      const std::size_t left = ::ZSTD_decompressStream(stream_.get(), &output, &input_);
      if (::ZSTD_isError(left)) fail(left);
      require_memory(output.pos - before, left == 0);
      frame_done_ = left == 0;
      // The file has ended inside a frame, and no output is left in the decoder.
      if (input_.size == 0 && output.pos == before && !frame_done_) {
        throw DataError(path_, file_offset(), "the zstd stream is truncated");
      }
    }
    return output.pos;
  }
  int64_t file_offset() const override {
    return file_.file_offset() - static_cast<int64_t>(input_.size - input_.pos);
  }
  bool is_compressed() const override { return true; }

 private:
  [[noreturn]] void fail(std::size_t error) const {
    if (::ZSTD_getErrorCode(error) == ZSTD_error_frameParameter_windowTooLarge) {
      throw DataError(path_, file_offset(),
                      "the zstd stream has a window of more than 2 GiB, the most that is read; "
                      "decompress the file by what made it");
    }
    throw DataError(path_, file_offset(),
                    fmt::format("the zstd stream is corrupt ({})", ::ZSTD_getErrorName(error)));
  }

  // The window's memory is announced by the stream, but taken only where text has come.
  void require_memory(std::size_t new_bytes, bool frame_ends) {
    frame_bytes_ = frame_ends ? 0 : frame_bytes_ + static_cast<int64_t>(new_bytes);
    if (frame_bytes_ <= most_memory_bytes_) return;
    const auto taken = static_cast<int64_t>(::ZSTD_sizeof_DStream(stream_.get()));
    if (taken <= most_memory_bytes_) return;
    throw DataError(
        path_, file_offset(),
        fmt::format("its zstd window takes {}; decompress it by `zstd -d --long=31`, if "
                    "you trust it",
                    out_of_proportion(taken, most_memory_bytes_)));
  }

  std::filesystem::path path_;
  PlainReader file_;
  const int64_t most_memory_bytes_;
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream_;
  std::vector<char> compressed_ = std::vector<char>(kBufferBytes);
  ZSTD_inBuffer input_{nullptr, 0, 0};
  int64_t frame_bytes_ = 0;  // of text in this frame
  bool frame_done_ = true;   // so that an empty file is not taken for a truncated one
};

bool has_one_of(const std::string& name, std::span<const std::string_view> suffixes) {
  return std::ranges::any_of(suffixes, [&](auto suffix) { return name.ends_with(suffix); });
}

bool begins_like_zstd(std::string_view bytes) {
  if (bytes.starts_with("\x28\xb5\x2f\xfd")) return true;
  // A frame that decoders skip: parallel compressors begin with one.
  return bytes.size() >= 4 && (bytes[0] & 0xf0) == 0x50 && bytes.substr(1, 3) == "\x2a\x4d\x18";
}

}  // namespace

int64_t most_memory_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? kLeastMemoryBytes
               : std::max(kLeastMemoryBytes, kMemoryOfFile * static_cast<int64_t>(bytes));
}

std::unique_ptr<ByteReader> open_bytes(const std::filesystem::path& path) {
  auto plain = std::make_unique<PlainReader>(path);
  std::array<char, 4> first{};
  const std::string_view bytes(first.data(), plain->read(first));
  if (bytes.starts_with("\x1f\x8b")) return std::make_unique<GzipReader>(path);
  if (begins_like_zstd(bytes)) return std::make_unique<ZstdReader>(path);
  // An empty file has no text, whatever it is called.
  const auto name = lower_name(path);
  for (const auto& [suffixes, kind] :
       {std::pair{std::span(kGzipSuffixes), "gzip"}, std::pair{std::span(kZstdSuffixes), "zstd"}}) {
    if (bytes.empty() || !has_one_of(name, suffixes)) continue;
    throw DataError(path, 0,
                    fmt::format("not a {} stream, though its name ends in {}; give the file its "
                                "right name, or take a whole copy of it",
                                kind, std::filesystem::path(name).extension().string()));
  }
  return std::make_unique<PlainReader>(path);
}

std::string lower_name(const std::filesystem::path& path) {
  auto name = path.filename().string();
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return static_cast<char>(c < 0x80 ? std::tolower(c) : c);
  });
  return name;
}

std::string name_without_compression(const std::filesystem::path& path) {
  const auto name = lower_name(path);
  if (!has_one_of(name, kGzipSuffixes) && !has_one_of(name, kZstdSuffixes)) return name;
  return name.substr(0, name.rfind('.'));
}

TextBuffer::TextBuffer(const std::filesystem::path& path)
    : path_(path),
      reader_(open_bytes(path)),
      most_bytes_(reader_->is_compressed() ? static_cast<std::size_t>(most_memory_bytes(path))
                                           : std::numeric_limits<std::size_t>::max()) {
  fill();  // now, not later: a file that cannot be read is found before hours of work
  used_ = buffer_.size() - without_byte_order_mark(buffer_).size();
}

std::optional<std::string> TextBuffer::line() {
  if (at_end()) return std::nullopt;
  std::string line;
  do {
    const auto end = std::min(buffer_.find('\n', used_), buffer_.size());
    take(end - used_, line);
    if (used_ == buffer_.size()) continue;
    ++used_;
    return line;
  } while (!at_end());
  return line;
}

std::string TextBuffer::rest() {
  std::string text;
  while (!at_end()) take(buffer_.size() - used_, text);
  return text;
}

void TextBuffer::take(std::size_t bytes, std::string& text) {
  if (bytes > most_bytes_ - text.size()) {
    throw DataError(
        path_, static_cast<std::size_t>(file_offset()),
        fmt::format("decompressed, a line or text takes {}; decompress the file before, if you "
                    "trust it",
                    out_of_proportion(static_cast<int64_t>(text.size() + bytes),
                                      static_cast<int64_t>(most_bytes_))));
  }
  text.append(buffer_, used_, bytes);
  used_ += bytes;
}

bool TextBuffer::fill() {
  buffer_.resize(kBufferBytes);
  buffer_.resize(reader_->read(buffer_));
  used_ = 0;
  return !buffer_.empty();
}

}  // namespace farstep
