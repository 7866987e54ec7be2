// manifest.json: size and checksum of every file of a checkpoint folder. It is written last, so a
// folder that agrees with its manifest is complete.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/checkpoint/safetensors_writer.h"
#include "trainer/config/fields.h"

namespace farstep {

struct ManifestFile {
  std::string name;
  int64_t bytes = 0;
  std::string checksum;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "name of the file", kRequired);
    visit("bytes", bytes, "its size", required(at_least(0)));
    visit("checksum", checksum, "XXH3 of its bytes, 16 hexadecimal digits", kRequired);
  }
};

struct Manifest {
  std::vector<ManifestFile> files;

  void add(const std::string& name, const WrittenFile& written);
  // Returns the bytes of all files.
  int64_t total_bytes() const;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("files", files, "every file of the folder but this one", required(at_least(1)));
  }
};

// Writes folder/manifest.json durably. Throws DataError.
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

// Reads every file in the manifest. Throws DataError, naming the file, unless size and checksum of
// each agree.
void verify_manifest(const std::filesystem::path& folder);

}  // namespace farstep
