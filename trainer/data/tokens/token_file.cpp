#include "trainer/data/tokens/token_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

#include "trainer/base/error.h"

namespace farstep {

namespace {

static_assert(std::endian::native == std::endian::little, "ids are read as they lie");

// llm.c's headers: what they begin with, their version, and the bytes of a token.
struct Format {
  int32_t magic, version;
  int64_t token_bytes;
};
constexpr Format kFormats[] = {{20240520, 1, 2}, {20240801, 7, 4}};
constexpr std::size_t kHeaderIntegers = 256;

}  // namespace

bool TokenFile::validates(const std::filesystem::path& path) {
  const auto stem = "_" + path.stem().string() + "_";
  return stem.find("_val_") != std::string::npos || stem.find("_validation_") != std::string::npos;
}

TokenFile::TokenFile(const std::filesystem::path& path) : path_(path), in_(path, std::ios::binary) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (!in_ || error) {
    throw DataError(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
  }
  std::array<int32_t, kHeaderIntegers> header{};
  in_.read(reinterpret_cast<char*>(header.data()), sizeof(header));
  const bool has_header = in_.gcount() == sizeof(header);
  in_.clear();
  for (const auto& format : kFormats) {
    if (!has_header || header[0] != format.magic || header[1] != format.version) continue;
    header_bytes_ = sizeof(header);
    token_bytes_ = format.token_bytes;
    num_tokens_ = header[2];
  }
  const auto token_bytes = static_cast<uint64_t>(token_bytes_);
  const auto payload_bytes = bytes - static_cast<uint64_t>(header_bytes_);
  if (header_bytes_ == 0) num_tokens_ = static_cast<int64_t>(bytes / token_bytes);
  if (num_tokens_ < 0 || static_cast<uint64_t>(num_tokens_) * token_bytes != payload_bytes) {
    throw DataError(
        path, bytes,
        header_bytes_ == 0
            ? "no file of tokens: an odd number of bytes"
            : fmt::format("the file ends here, but its header announces {} tokens of {} "
                          "bytes",
                          num_tokens_, token_bytes_));
  }
  in_.seekg(header_bytes_);
}

void TokenFile::read(std::size_t most, int64_t vocabulary, std::vector<int32_t>& ids) {
  const auto count = std::min(most, static_cast<std::size_t>(num_tokens_ - done_));
  std::vector<char> bytes(count * static_cast<std::size_t>(token_bytes_));
  in_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!in_) {
    throw DataError(fmt::format("{}: cannot be read: {}", path_.string(), std::strerror(errno)));
  }
  ids.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    uint32_t id = 0;
    const auto token_bytes = static_cast<std::size_t>(token_bytes_);
    std::memcpy(&id, bytes.data() + i * token_bytes, token_bytes);
    if (id >= static_cast<uint64_t>(vocabulary)) {
      const auto place = header_bytes_ + (done_ + static_cast<int64_t>(i)) * token_bytes_;
      throw DataError(
          path_, static_cast<std::size_t>(place),
          fmt::format("token id {} is beyond the tokenizer's vocabulary of {}; name the "
                      "tokenizer that made this file",
                      id, vocabulary));
    }
    ids[i] = static_cast<int32_t>(id);
  }
  done_ += static_cast<int64_t>(count);
}

}  // namespace farstep
