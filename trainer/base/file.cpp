#include "trainer/base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "trainer/base/error.h"

namespace farstep {

std::string read_file(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  if (in && in.peek() != std::ifstream::traits_type::eof()) content << in.rdbuf();
  if (!in.is_open() || in.bad() || !content) {
    throw DataError(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)));
  }
  return content.str();
}

void sync_to_disk(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!synced) {
    throw DataError(fmt::format("{}: cannot be flushed: {}", path.string(), std::strerror(error)));
  }
}

void write_file_durably(const std::filesystem::path& path, std::string_view content) {
  auto partial = path;
  partial += ".partial";
  {
    std::ofstream out(partial, std::ios::binary | std::ios::trunc);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.flush();
    if (!out) {
      throw DataError(
          fmt::format("{}: cannot be written: {}", partial.string(), std::strerror(errno)));
    }
  }
  sync_to_disk(partial);
  rename_durably(partial, path);
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error) {
    throw DataError(
        fmt::format("{}: cannot be renamed into place: {}", to.string(), error.message()));
  }
  sync_to_disk(to.has_parent_path() ? to.parent_path() : std::filesystem::path("."));
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be made: {}", path.string(), error.message()));
  }
}

}  // namespace farstep
