// Pages are read one after the other, and their values are taken where the decoder has them.
// Arrow's arrays would need a whole row group of text at once, of which there may be gigabytes.
#include "trainer/data/parquet/arrow_file.h"

#include <arrow/memory_pool.h>
#include <parquet/api/reader.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace farstep {

namespace {

// Rows that are decoded at once: pointers into a page, not copies.
constexpr int64_t kBatchRows = 1024;
constexpr int64_t kBufferBytes = 1 << 20;
// Memory for the pages of a file: Arrow takes what a page announces before it reads the page, and a
// damaged one may announce gigabytes. Writers make pages of about 1 MiB, or of one long text, and
// compression makes text up to 64 times smaller.
constexpr int64_t kLeastMemoryBytes = 256 << 20, kMemoryOfFile = 64;

[[noreturn]] void refuse(const std::string& what) {
  throw parquet::ParquetException(what);
}

int64_t most_memory_bytes(const char* path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return kLeastMemoryBytes + (error ? 0 : kMemoryOfFile * static_cast<int64_t>(bytes));
}

// Returns what `call` returns, and says what mends it where memory does not suffice.
template <typename Call>
auto within_memory(const char* path, Call&& call) {
  try {
    return call();
  } catch (const parquet::ParquetStatusException& error) {
    if (!error.status().IsOutOfMemory()) throw;
    refuse("a page takes more memory than the " + std::to_string(most_memory_bytes(path) >> 20) +
           " MiB that a file of this size may take (256 MiB and 64 times its own); write it with "
           "smaller pages: pyarrow.parquet.write_table(..., data_page_size=1 << 20, "
           "write_batch_size=64)");
  }
}

std::unique_ptr<parquet::ParquetFileReader> open_reader(const char* path, arrow::MemoryPool& pool) {
  parquet::ReaderProperties properties(&pool);
  // Without this a column's part of a row group would be read as a whole.
  properties.enable_buffered_stream();
  properties.set_buffer_size(kBufferBytes);
  properties.set_page_checksum_verification(true);
  return parquet::ParquetFileReader::OpenFile(path, /*memory_map=*/false, properties);
}

// Whether a column may hold text.
bool holds_text(const parquet::schema::Node& node) {
  if (!node.is_primitive() || node.is_repeated()) return false;
  const auto type = static_cast<const parquet::schema::PrimitiveNode&>(node).physical_type();
  const auto& logical = *node.logical_type();
  return type == parquet::Type::BYTE_ARRAY &&
         (logical.is_none() || logical.is_string() || logical.is_enum() || logical.is_JSON());
}

std::string type_of(const parquet::schema::Node& node) {
  if (!node.logical_type()->is_none()) return node.logical_type()->ToString();
  return parquet::TypeToString(
      static_cast<const parquet::schema::PrimitiveNode&>(node).physical_type());
}

std::string text_columns(const parquet::schema::GroupNode& root) {
  std::string names;
  for (int i = 0; i < root.field_count(); ++i) {
    if (!holds_text(*root.field(i))) continue;
    names += (names.empty() ? "" : ", ") + root.field(i)->name();
  }
  return names.empty() ? "it has no column of text" : "it has these of text: " + names;
}

// Returns the number of the column among those that are no groups.
int find_column(const parquet::SchemaDescriptor& schema, const std::string& name) {
  const auto& root = *schema.group_node();
  const auto refuse_column = [&](const std::string& what) {
    refuse("column \"" + name + "\" " + what + "; " + text_columns(root));
  };
  const int field = root.FieldIndex(name);
  if (field < 0) {
    const int outer = root.FieldIndex(name.substr(0, name.find('.')));
    refuse_column(outer >= 0 && root.field(outer)->is_group() ? "is inside of another one"
                                                              : "is not there");
  }
  const auto& node = *root.field(field);
  if (node.is_group() || node.is_repeated()) refuse_column("is nested (a list, map or struct)");
  if (!holds_text(node)) refuse_column("is of type " + type_of(node) + ", not of text");
  return schema.ColumnIndex(node);
}

class ParquetFile : public ArrowFile {
 public:
  explicit ParquetFile(const char* path)
      : path_(path),
        pool_(arrow::default_memory_pool(), most_memory_bytes(path)),
        reader_(open_reader(path, pool_)) {
    int64_t rows = 0;
    for (int i = 0; i < reader_->metadata()->num_row_groups(); ++i) {
      const int64_t in_group = reader_->metadata()->RowGroup(i)->num_rows();
      if (in_group < 0) refuse("a row group has a negative number of rows");
      rows += in_group;
    }
    if (rows != num_rows()) refuse("its row groups have not the rows that it announces");
  }

  int64_t num_rows() const override { return reader_->metadata()->num_rows(); }

  void choose(std::string_view column) override {
    column_ = find_column(*reader_->metadata()->schema(), std::string(column));
  }

  bool read(std::string_view& bytes) override {
    if (row_ == batch_rows_) within_memory(path_.c_str(), [&] { decode(); });
    if (levels_[static_cast<std::size_t>(row_++)] != most_level_) return false;
    const auto& value = values_[static_cast<std::size_t>(value_++)];
    bytes = {reinterpret_cast<const char*>(value.ptr), value.len};
    return true;
  }

  // Whole row groups are not even read.
  void skip(int64_t rows) override {
    std::string_view skipped;
    for (; rows > 0 && row_ < batch_rows_; --rows) read(skipped);
    while (rows > 0) {
      if (group_rows_left_ == 0) next_group();
      const int64_t count = std::min(rows, group_rows_left_);
      if (count < group_rows_left_) {
        open_group();
        const auto skipped =
            within_memory(path_.c_str(), [&] { return values_reader_->Skip(count); });
        if (skipped != count) refuse("a row group ends before its last row");
      }
      group_rows_left_ -= count;
      rows -= count;
    }
  }

 private:
  // Begins the next row group that has rows; there must be one.
  void next_group() {
    do {
      group_rows_left_ = reader_->metadata()->RowGroup(++group_)->num_rows();
    } while (group_rows_left_ == 0);
    values_reader_.reset();
  }

  void open_group() {
    if (values_reader_) return;
    group_reader_ = reader_->RowGroup(group_);
    values_reader_ =
        std::static_pointer_cast<parquet::ByteArrayReader>(group_reader_->Column(column_));
    most_level_ = values_reader_->descr()->max_definition_level();
  }

  void decode() {
    if (group_rows_left_ == 0) next_group();
    open_group();
    int64_t num_values = 0;
    batch_rows_ = row_ = value_ = 0;
    const int64_t rows =
        values_reader_->ReadBatch(std::min(kBatchRows, group_rows_left_), levels_.data(), nullptr,
                                  values_.data(), &num_values);
    if (rows <= 0 || rows > group_rows_left_) refuse("a row group ends before its last row");
    // A column without nulls has no levels.
    if (most_level_ == 0) std::fill(levels_.begin(), levels_.end(), most_level_);
    if (std::count(levels_.begin(), levels_.begin() + rows, most_level_) != num_values) {
      refuse("a page has not the values that it announces");
    }
    batch_rows_ = rows;
    group_rows_left_ -= rows;
  }

  const std::string path_;
  arrow::CappedMemoryPool pool_;
  const std::unique_ptr<parquet::ParquetFileReader> reader_;
  int column_ = 0;
  int group_ = -1;
  int64_t group_rows_left_ = 0;  // not decoded
  std::shared_ptr<parquet::RowGroupReader> group_reader_;
  std::shared_ptr<parquet::ByteArrayReader> values_reader_;  // of the group; null: not open
  int16_t most_level_ = 0;  // the definition level of a row with a value
  // The rows that are decoded, and which is next; values point into the page that is read.
  std::vector<int16_t> levels_ = std::vector<int16_t>(kBatchRows);
  std::vector<parquet::ByteArray> values_ = std::vector<parquet::ByteArray>(kBatchRows);
  int64_t batch_rows_ = 0, row_ = 0, value_ = 0;
};

}  // namespace

}  // namespace farstep

extern "C" void farstep_open_arrow_file_1(const char* path,
                                          std::unique_ptr<farstep::ArrowFile>& file) {
  file = std::make_unique<farstep::ParquetFile>(path);
}
