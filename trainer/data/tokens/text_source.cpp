// Three compressions behind one reader of bytes, and two kinds of files above it. A file of JSON
// lines is streamed, a document at a time, and so is a Parquet file. Any other file is one
// document, and is read whole.
#include "trainer/data/tokens/text_source.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/stopped.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace detail {

// Reads the bytes of a file, decompressed.
class ByteReader {
 public:
  virtual ~ByteReader() = default;
  // Fills `out`. Returns fewer bytes only at the end of the file.
  virtual std::size_t read(std::span<char> out) = 0;
  // Returns the bytes of the file that have been read.
  virtual int64_t file_offset() const = 0;
};

}  // namespace detail

namespace {

// Few system calls, and the buffer stays in a core's cache.
constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

class PlainReader : public detail::ByteReader {
 public:
  explicit PlainReader(const std::filesystem::path& path)
      : path_(path), in_(path, std::ios::binary) {
    if (!in_) throw DataError(path_, 0, fmt::format("cannot be opened: {}", std::strerror(errno)));
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

 private:
  std::filesystem::path path_;
  std::ifstream in_;
  int64_t offset_ = 0;
};

class GzipReader : public detail::ByteReader {
 public:
  explicit GzipReader(const std::filesystem::path& path)
      : path_(path), file_(::gzopen(path.c_str(), "rb"), &::gzclose) {
    if (!file_) {
      throw DataError(path_, 0, fmt::format("cannot be opened: {}", std::strerror(errno)));
    }
    ::gzbuffer(file_.get(), kBufferBytes);
    // zlib passes on other files unchanged; a wrong name is an error here.
    if (::gzdirect(file_.get())) {
      throw DataError(path_, 0, "not a gzip stream, though its name ends in .gz");
    }
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

 private:
  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

// A file may consist of several frames, one after the other, as parallel compressors write them. It
// may end only between two of them.
class ZstdReader : public detail::ByteReader {
 public:
  explicit ZstdReader(const std::filesystem::path& path)
      : path_(path), file_(path), stream_(::ZSTD_createDStream(), &::ZSTD_freeDStream) {
    FARSTEP_CHECK(stream_ != nullptr, "no memory for a zstd stream");
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
      if (::ZSTD_isError(left)) {
        throw DataError(path_, file_offset(),
                        fmt::format("the zstd stream is corrupt ({})", ::ZSTD_getErrorName(left)));
      }
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

 private:
  std::filesystem::path path_;
  PlainReader file_;
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream_;
  std::vector<char> compressed_ = std::vector<char>(kBufferBytes);
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool frame_done_ = true;  // so that an empty file is not taken for a truncated one
};

std::unique_ptr<detail::ByteReader> open_bytes(const std::filesystem::path& path) {
  // An empty file has no text, whatever it is called.
  std::error_code none;
  if (std::filesystem::file_size(path, none) == 0) return std::make_unique<PlainReader>(path);
  if (path.extension() == ".gz") return std::make_unique<GzipReader>(path);
  if (path.extension() == ".zst") return std::make_unique<ZstdReader>(path);
  return std::make_unique<PlainReader>(path);
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Takes the text out of a JSON line as the parser comes across it, so that nothing else is kept.
class TextFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TextFinder(const std::string& field, Document& document) : field_(field), document_(document) {}

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_unsigned(number_unsigned_t) override { return other(); }
  bool number_float(number_float_t, const string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool string(string_t& value) override {
    if (!is_text()) return other();
    document_.text = std::move(value);
    found_ = true;
    return true;
  }
  bool start_object(std::size_t) override { return begin(true); }
  bool key(string_t& name) override {
    if (depth_ == 1) is_field_ = name == field_;
    return true;
  }
  bool end_object() override { return end(); }
  bool start_array(std::size_t) override { return begin(false); }
  bool end_array() override { return end(); }
  bool parse_error(std::size_t place, const std::string&,
                   const nlohmann::json::exception&) override {
    fault_ = fmt::format("not JSON at character {}", place);
    return false;
  }

  // Returns what is wrong; empty if there is a text.
  std::string fault() const {
    if (!fault_.empty()) return fault_;
    if (!is_object_) return "not a JSON object";
    return found_ ? "" : fmt::format("has no string member \"{}\"", field_);
  }

 private:
  bool is_text() const { return depth_ == 1 && is_field_; }
  bool other() {
    if (is_text()) found_ = false;  // of members with one name the last one counts
    return true;
  }
  bool begin(bool object) {
    other();
    if (depth_ == 0) is_object_ = object;
    ++depth_;
    return true;
  }
  bool end() {
    --depth_;
    return true;
  }

  const std::string& field_;
  Document& document_;
  std::string fault_;
  int64_t depth_ = 0;
  bool is_object_ = false, is_field_ = false, found_ = false;
};

// Faults name the line, because JSONL files are too large to search by hand.
Document document_of_line(int64_t line, const std::string& json, const std::string& field) {
  Document document;
  TextFinder finder(field, document);
  nlohmann::json::sax_parse(json, &finder);
  if (const auto fault = finder.fault(); !fault.empty()) {
    document.fault = fmt::format("line {}: {}", line, fault);
  }
  return document;
}

// Text in another encoding, an image or a program must not become tokens without notice.
Document plain_document(std::string text) {
  Document document;
  const auto valid = valid_utf8_bytes(text);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    document.fault = "byte 0: UTF-16, not UTF-8; `iconv -f UTF-16 -t UTF-8` converts it";
  } else if (valid < text.size()) {
    document.fault =
        fmt::format("byte {}: not UTF-8 text; convert it, or leave the file out", valid);
  } else if (const auto zero = text.find('\0'); zero != std::string::npos) {
    document.fault = fmt::format("byte {}: a byte of 0, so no text; leave the file out", zero);
  }
  document.text = std::move(text);
  return document;
}

}  // namespace

bool is_jsonl(const std::filesystem::path& path) {
  // x.jsonl.gz is a file of lines as well.
  const bool compressed = path.extension() == ".gz" || path.extension() == ".zst";
  return (compressed ? path.stem() : path).extension() == ".jsonl";
}

bool is_one_document(const std::filesystem::path& path) {
  return !is_jsonl(path) && !is_parquet(path);
}

int64_t count_documents(const std::filesystem::path& path, const std::stop_token& stop) {
  if (is_parquet(path)) return ParquetText::count_rows(path);
  constexpr int64_t kMost = 10'000;  // between two looks at `stop`
  TextSource source(path);
  int64_t count = 0, skipped = 0;
  do {
    throw_if_stopped(stop);
    count += skipped = source.skip(kMost);
  } while (skipped == kMost);
  return count;
}

TextSource::TextSource(const std::filesystem::path& path, std::string field)
    : path_(path), field_(std::move(field)) {
  if (is_parquet(path)) {
    table_.emplace(path, field_);
    return;
  }
  reader_ = open_bytes(path);
  fill();  // now, not at the first next(): a file that cannot be read is found before hours of work
}
TextSource::~TextSource() = default;
TextSource::TextSource(TextSource&&) noexcept = default;

std::optional<Document> TextSource::next() {
  if (table_) return next_row();
  if (is_jsonl(path_)) {
    const auto line = next_line();
    return line ? std::optional(document_of_line(line_, *line, field_)) : std::nullopt;
  }
  if (used_ == buffer_.size()) return std::nullopt;
  return plain_document(rest_of_file());
}

// Counts documents without parsing JSON, so that counting takes a fraction of the time of reading.
int64_t TextSource::skip(int64_t most) {
  if (table_) return table_->skip(most);
  int64_t skipped = 0;
  while (skipped < most && (is_jsonl(path_) ? next_line().has_value() : !rest_of_file().empty())) {
    ++skipped;
  }
  return skipped;
}

int64_t TextSource::file_bytes_read() const {
  if (table_) {  // a column's pages lie all over the file, so by rows
    std::error_code none;
    return static_cast<int64_t>(static_cast<double>(std::filesystem::file_size(path_, none)) *
                                static_cast<double>(table_->next_row()) /
                                static_cast<double>(std::max<int64_t>(1, table_->num_rows())));
  }
  return reader_->file_offset();
}

bool TextSource::fill() {
  buffer_.resize(kBufferBytes);
  buffer_.resize(reader_->read(buffer_));
  used_ = 0;
  return !buffer_.empty();
}

// The constructor has read the first buffer already; the text begins there.
std::string TextSource::rest_of_file() {
  std::string text = buffer_.substr(used_);
  while (fill()) text += buffer_;
  buffer_.clear();
  used_ = 0;
  return text;
}

// A line may extend over several buffers; blank lines are skipped.
std::optional<std::string> TextSource::next_line() {
  std::string line;
  while (used_ < buffer_.size() || fill()) {
    const auto end = buffer_.find('\n', used_);
    line.append(buffer_, used_, end == std::string::npos ? end : end - used_);
    used_ = end == std::string::npos ? buffer_.size() : end + 1;
    if (end == std::string::npos) continue;
    ++line_;
    if (!is_blank(line)) return line;
    line.clear();
  }
  ++line_;  // the last line may lack its newline
  return is_blank(line) ? std::nullopt : std::optional(line);
}

// Rows are numbered as Python's libraries do it.
std::optional<Document> TextSource::next_row() {
  const int64_t row = table_->next_row();
  std::optional<std::string> bytes;
  if (!table_->next(bytes)) return std::nullopt;
  Document document;
  if (!bytes) {
    document.fault = fmt::format("row {} (from 0): has no text in column \"{}\"", row, field_);
  } else if (const auto valid = valid_utf8_bytes(*bytes); valid < bytes->size()) {
    document.fault = fmt::format("row {} (from 0): byte {}: not UTF-8 text", row, valid);
  } else {
    document.text = std::move(*bytes);
  }
  return document;
}

}  // namespace farstep
