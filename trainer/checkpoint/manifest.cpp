// Rename and flush order what a crash of this machine leaves. Checksums find what they cannot: a
// disk that lies, a copy that was cut short, a file of another run.
#include "trainer/checkpoint/manifest.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/json_file.h"

namespace farstep {

namespace {

constexpr const char* kManifest = "manifest.json";

// Reads in pieces, because a checkpoint can be larger than the memory.
WrittenFile read_through(const std::filesystem::path& path) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw DataError(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
  }
  std::vector<char> piece(kPieceBytes);
  StreamingChecksum checksum;
  int64_t bytes = 0;
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto count = static_cast<std::size_t>(in.gcount());
    checksum.update(std::as_bytes(std::span(piece).first(count)));
    bytes += in.gcount();
  }
  if (in.bad()) {
    throw DataError(fmt::format("{}: offset {}: cannot be read: {}", path.string(), bytes,
                                std::strerror(errno)));
  }
  return {bytes, checksum.value()};
}

}  // namespace

void Manifest::add(const std::string& name, const WrittenFile& written) {
  files.push_back({name, written.bytes, checksum_text(written.checksum)});
}

int64_t Manifest::total_bytes() const {
  int64_t total = 0;
  for (const auto& file : files) total += file.bytes;
  return total;
}

void write_manifest(const std::filesystem::path& folder, const Manifest& manifest) {
  write_file_durably(folder / kManifest, to_json(manifest).dump(2) + "\n");
}

// The size is compared first: it gives the clearer message for a truncated file.
void verify_manifest(const std::filesystem::path& folder) {
  for (const auto& file : load_fields<Manifest>(folder / kManifest).files) {
    const auto path = folder / file.name;
    // A manifest that somebody sent must not make this program read files beyond the folder.
    if (path.filename() != file.name || file.name == "." || file.name == "..") {
      throw DataError(fmt::format("{}: '{}' is not the name of a file in the folder",
                                  (folder / kManifest).string(), file.name));
    }
    const auto found = read_through(path);
    if (found.bytes != file.bytes) {
      throw DataError(fmt::format("{}: has {} bytes, {} when it was written", path.string(),
                                  found.bytes, file.bytes));
    }
    if (checksum_text(found.checksum) != file.checksum) {
      throw DataError(fmt::format("{}: has checksum {}, {} when it was written", path.string(),
                                  checksum_text(found.checksum), file.checksum));
    }
  }
}

}  // namespace farstep
