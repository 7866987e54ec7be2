#include "trainer/base/system/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "trainer/base/error.h"

namespace farstep {

namespace {

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// Exchanges two folders in one step. Returns false if the file system cannot (NFS).
bool swap_folders(const std::filesystem::path& a, const std::filesystem::path& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS) return false;
  throw DataError(fmt::format("{}: cannot be replaced by {}: {}", b.string(), a.string(),
                              std::strerror(errno)));
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  // Streams do not set errno in every case, and an older value would name another fault.
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  // An empty file is read without "<<", which fails if it copies nothing.
  if (in && in.peek() != std::ifstream::traits_type::eof()) content << in.rdbuf();
  if (!in.is_open() || in.bad() || !content) {
    throw DataError(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)));
  }
  return content.str();
}

void sync_to_disk(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  // close() may set errno too.
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!synced) {
    throw DataError(fmt::format("{}: cannot be flushed: {}", path.string(), std::strerror(error)));
  }
}

// The order matters: content before name, and name before the folder's flush, so that a crash shows
// either file whole.
void write_file_durably(const std::filesystem::path& path, std::string_view content) {
  // In the same folder: a rename cannot cross file systems.
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
  sync_to_disk(folder_of(to));
}

void replace_folder_durably(const std::filesystem::path& staged,
                            const std::filesystem::path& target) {
  std::error_code unknown;  // ignored: the rename fails too, and reports why
  if (!std::filesystem::exists(target, unknown)) return rename_durably(staged, target);
  if (swap_folders(staged, target)) {
    // `staged` has the old folder now. It goes only after the new one is safe on the disk.
    sync_to_disk(folder_of(target));
    remove_folder(staged);
    return;
  }
  // Without an exchange there is a moment without a folder; a crash then leaves `staged`.
  remove_folder(target);
  rename_durably(staged, target);
}

void set_aside(const std::filesystem::path& path) {
  rename_durably(path, path.string() + ".damaged");
}

void remove_file_durably(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be removed: {}", path.string(), error.message()));
  }
  sync_to_disk(folder_of(path));
}

void remove_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be removed: {}", path.string(), error.message()));
  }
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be made: {}", path.string(), error.message()));
  }
}

}  // namespace farstep
