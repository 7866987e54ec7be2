#include "trainer/data/parquet/parquet_text.h"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Returns what `call` returns. The library's errors become DataErrors that name the file. They may
// be of any standard kind, where a damaged file has absurd sizes.
template <typename Call>
auto in_file_of(const std::filesystem::path& path, Call&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    const std::string_view what = error.what();
    throw DataError(fmt::format("{}: cannot be read as Parquet: {}", path.string(),
                                what.substr(0, what.find('\n'))));
  }
}

// The module stays loaded until the process ends.
std::unique_ptr<ArrowFile> open_file(const std::filesystem::path& path, const char* module) {
  void* const library = ::dlopen(module, RTLD_NOW | RTLD_LOCAL);
  void* const function = library ? ::dlsym(library, kOpenArrowFile) : nullptr;
  if (function == nullptr) {
    throw DataError(fmt::format(
        "{}: Parquet needs Arrow's library, and this program has it not ({}): `scripts/setup.sh "
        "--parquet` fetches it; then configure and build again",
        path.string(), ::dlerror()));
  }
  std::unique_ptr<ArrowFile> file;
  in_file_of(path, [&] { reinterpret_cast<OpenArrowFile>(function)(path.c_str(), file); });
  return file;
}

}  // namespace

ParquetText::ParquetText(const std::filesystem::path& path, const std::string& column,
                         const char* module)
    : path_(path), file_(open_file(path, module)), num_rows_(file_->num_rows()) {
  in_file_of(path, [&] { file_->choose(column); });
}

int64_t ParquetText::count_rows(const std::filesystem::path& path) {
  return open_file(path, kParquetModule)->num_rows();
}

bool ParquetText::next(std::optional<std::string>& bytes) {
  if (next_row_ == num_rows_) return false;
  std::string_view read;
  bytes.reset();
  if (in_file_of(path_, [&] { return file_->read(read); })) bytes.emplace(read);
  ++next_row_;
  return true;
}

int64_t ParquetText::skip(int64_t most) {
  const int64_t rows = std::min(most, num_rows_ - next_row_);
  in_file_of(path_, [&] { file_->skip(rows); });
  next_row_ += rows;
  return rows;
}

}  // namespace farstep
