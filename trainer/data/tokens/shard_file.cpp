// A shard is a header of 48 bytes and the tokens as they lie in memory, so that training maps the
// file and reads without parsing. docs/token_shards.md has the format byte by byte.
#include "trainer/data/tokens/shard_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

static_assert(std::endian::native == std::endian::little, "shards are mapped as they lie");

constexpr std::string_view kMagic = "FSTOKENS";
constexpr uint32_t kFormatVersion = 1;

// The header's bytes in the file.
struct RawHeader {
  char magic[8];
  uint32_t version;
  uint32_t token_bytes;
  uint32_t vocabulary;
  uint32_t eos;
  uint64_t num_tokens;
  uint64_t payload_checksum;
  uint64_t header_checksum;  // of everything before it
};
static_assert(sizeof(RawHeader) == 48);

// Its last field is left out: a checksum cannot cover itself.
std::span<const std::byte> checked_bytes(const RawHeader& raw) {
  return std::as_bytes(std::span(&raw, 1)).first(offsetof(RawHeader, header_checksum));
}

// The checksum comes before the fields: a corrupt header gives one clear message. The size comes
// last, and shows a truncated file.
ShardHeader parse_header(const std::filesystem::path& path, std::span<const std::byte> file) {
  RawHeader raw;
  if (file.size() < sizeof(raw)) {
    throw DataError(path, file.size(),
                    fmt::format("the file ends inside its header of {} bytes", sizeof(raw)));
  }
  std::memcpy(&raw, file.data(), sizeof(raw));
  if (std::string_view(raw.magic, sizeof(raw.magic)) != kMagic) {
    throw DataError(path, 0, "not a token shard; `farstep tokenize` makes them");
  }
  if (raw.version != kFormatVersion) {
    throw DataError(
        path, offsetof(RawHeader, version),
        fmt::format("format version {}, but this program reads {}; tokenize the text again",
                    raw.version, kFormatVersion));
  }
  if (raw.header_checksum != checksum(checked_bytes(raw))) {
    throw DataError(
        path, offsetof(RawHeader, header_checksum),
        "the header does not match its checksum: the file is corrupt, copy or make it again");
  }
  if (raw.token_bytes != 2 && raw.token_bytes != 4) {
    throw DataError(path, offsetof(RawHeader, token_bytes),
                    fmt::format("token width {}; must be 2 or 4", raw.token_bytes));
  }
  if (raw.eos >= raw.vocabulary) {
    throw DataError(
        path, offsetof(RawHeader, eos),
        fmt::format("eos id {} is beyond the vocabulary of {}", raw.eos, raw.vocabulary));
  }
  const uint64_t payload_bytes = file.size() - sizeof(raw);
  if (payload_bytes % raw.token_bytes != 0 || payload_bytes / raw.token_bytes != raw.num_tokens) {
    throw DataError(
        path, file.size(),
        fmt::format("the file ends here, but its header announces {} tokens of {} bytes",
                    raw.num_tokens, raw.token_bytes));
  }
  if (raw.num_tokens == 0) {
    throw DataError(path, offsetof(RawHeader, num_tokens), "the shard is empty");
  }
  return {raw.token_bytes, raw.vocabulary, raw.eos, static_cast<int64_t>(raw.num_tokens),
          raw.payload_checksum};
}

template <typename Token>
std::span<const Token> tokens_of(std::span<const std::byte> payload) {
  return {reinterpret_cast<const Token*>(payload.data()), payload.size() / sizeof(Token)};
}

// Both passes over a block, for range and checksum, find it in the cache.
template <typename Token>
void verify_tokens(const std::filesystem::path& path, const ShardHeader& header,
                   std::span<const std::byte> payload) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 18;  // stays in the cache for both passes
  StreamingChecksum sum;
  for (std::size_t start = 0; start < payload.size(); start += kBlockBytes) {
    const auto block = payload.subspan(start, std::min(kBlockBytes, payload.size() - start));
    const auto tokens = tokens_of<Token>(block);
    // The maximum is a loop without branches, which becomes vector code. Only a wrong id is looked
    // up.
    Token largest = 0;
    for (const Token token : tokens) largest = std::max(largest, token);
    if (largest >= header.vocabulary) {
      const auto at = std::find(tokens.begin(), tokens.end(), largest) - tokens.begin();
      throw DataError(
          path, sizeof(RawHeader) + start + static_cast<std::size_t>(at) * sizeof(Token),
          fmt::format("token id {} is beyond the vocabulary of {}: the file is corrupt, copy it "
                      "or make it again",
                      largest, header.vocabulary));
    }
    sum.update(block);
  }
  if (sum.value() != header.payload_checksum) {
    throw DataError(
        path, offsetof(RawHeader, payload_checksum),
        "the tokens do not match their checksum: the file is corrupt, copy or make it again");
  }
}

// Appended to the whole name: replace_extension() would drop a part of it.
std::filesystem::path with_suffix(std::filesystem::path path, const char* suffix) {
  path += suffix;
  return path;
}

}  // namespace

int64_t token_bytes_for(int64_t vocabulary) {
  // Half the bytes for usual vocabularies.
  return vocabulary <= 65536 ? 2 : 4;
}

// Tokens stream into FILE.partial, so memory does not grow with the shard. finish() gives the file
// its name.
ShardWriter::ShardWriter(const std::filesystem::path& path, int64_t vocabulary, int64_t eos)
    : path_(path),
      partial_(with_suffix(path, ".partial")),
      header_{token_bytes_for(vocabulary), vocabulary, eos, 0, 0},
      out_(partial_, std::ios::binary | std::ios::trunc) {
  FARSTEP_CHECK(eos >= 0 && eos < vocabulary && vocabulary <= std::numeric_limits<int32_t>::max(),
                "eos {} and vocabulary {} of {}", eos, vocabulary, path.string());
  // Its place; the checksum and the count are only known at the end.
  const RawHeader placeholder{};
  write(std::as_bytes(std::span(&placeholder, 1)));
}

// A writer that was killed may have finished the shard after it had saved this part.
ShardWriter::ShardWriter(const std::filesystem::path& path, int64_t vocabulary, int64_t eos,
                         const ShardPart& part)
    : path_(path),
      partial_(with_suffix(path, ".partial")),
      header_{token_bytes_for(vocabulary), vocabulary, eos, 0, 0},
      stays_(true) {
  std::error_code none;
  if (!std::filesystem::exists(partial_, none) && std::filesystem::exists(path, none)) {
    rename_durably(path, partial_);
  }
  read_part(part);
  std::error_code error;
  const auto bytes = sizeof(RawHeader) + static_cast<std::uintmax_t>(part.tokens) *
                                             static_cast<std::uintmax_t>(header_.token_bytes);
  std::filesystem::resize_file(partial_, bytes, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be cut: {}", partial_.string(), error.message()));
  }
  out_.open(partial_, std::ios::binary | std::ios::in | std::ios::out | std::ios::ate);
  header_.num_tokens = part.tokens;
}

// The checksum of all tokens goes on from theirs. It also shows a part that a loss of power took
// from the disk.
void ShardWriter::read_part(const ShardPart& part) {
  std::ifstream in(partial_, std::ios::binary);
  in.seekg(sizeof(RawHeader));
  std::vector<char> block(std::size_t{1} << 18);
  for (auto left = part.tokens * header_.token_bytes; left > 0 && in; left -= in.gcount()) {
    in.read(block.data(), std::min(left, static_cast<int64_t>(block.size())));
    checksum_.update(std::as_bytes(std::span(block).first(static_cast<std::size_t>(in.gcount()))));
  }
  if (!in || checksum_text(checksum_.value()) != part.checksum) {
    throw DataError(fmt::format(
        "{}: has not the {} tokens that were saved: the file is damaged, and so removed; the same "
        "command begins anew",
        partial_.string(), part.tokens));
  }
}

ShardWriter::~ShardWriter() {
  if (stays_) return;
  out_.close();
  std::error_code ignored;  // a destructor cannot report an error
  std::filesystem::remove(partial_, ignored);
}

void ShardWriter::write(std::span<const std::byte> bytes) {
  out_.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!out_) {
    throw DataError(
        fmt::format("{}: cannot be written: {}", partial_.string(), std::strerror(errno)));
  }
}

// A wrong id is a defect of the caller. It is caught here, before it is in a file.
void ShardWriter::append(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    FARSTEP_CHECK(token >= 0 && token < header_.vocabulary, "token id {} of a vocabulary of {}",
                  token, header_.vocabulary);
  }
  // Tokens are 32 bits wide in memory, and the file has 16 for usual vocabularies.
  std::vector<uint16_t> narrow;
  std::span<const std::byte> bytes = std::as_bytes(tokens);
  if (header_.token_bytes == 2) {
    narrow.resize(tokens.size());
    std::transform(tokens.begin(), tokens.end(), narrow.begin(),
                   [](int32_t token) { return static_cast<uint16_t>(token); });
    bytes = std::as_bytes(std::span(narrow));
  }
  checksum_.update(bytes);
  write(bytes);
  header_.num_tokens += static_cast<int64_t>(tokens.size());
}

ShardPart ShardWriter::save() {
  out_.flush();
  write({});  // says if the flush failed
  sync_to_disk(partial_);
  stays_ = true;
  return {header_.num_tokens, checksum_text(checksum_.value())};
}

// The header is written last: a file without it is no shard.
void ShardWriter::finish() {
  RawHeader raw{};
  std::copy(kMagic.begin(), kMagic.end(), raw.magic);
  raw.version = kFormatVersion;
  raw.token_bytes = static_cast<uint32_t>(header_.token_bytes);
  raw.vocabulary = static_cast<uint32_t>(header_.vocabulary);
  raw.eos = static_cast<uint32_t>(header_.eos);
  raw.num_tokens = static_cast<uint64_t>(header_.num_tokens);
  raw.payload_checksum = checksum_.value();
  raw.header_checksum = checksum(checked_bytes(raw));
  // Over the placeholder, which the constructor wrote.
  out_.seekp(0);
  write(std::as_bytes(std::span(&raw, 1)));
  out_.close();
  if (!out_) {
    throw DataError(
        fmt::format("{}: cannot be written: {}", partial_.string(), std::strerror(errno)));
  }
  sync_to_disk(partial_);
  rename_durably(partial_, path_);
  stays_ = true;
}

ShardFile::ShardFile(const std::filesystem::path& path) : path_(path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    throw DataError(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(error)));
  }
  if (!S_ISREG(status.st_mode) || status.st_size == 0) {
    ::close(descriptor);
    throw DataError(path, 0, "the file is empty or no regular file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  // Mapped and shared: all processes of a machine have one copy in memory.
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (memory == MAP_FAILED) {
    throw DataError(fmt::format("{}: cannot be mapped: {}", path.string(), std::strerror(error)));
  }
  mapped_ = {static_cast<const std::byte*>(memory), size};
  try {
    // The destructor of an object that was not made does not run, so the mapping is undone here.
    header_ = parse_header(path, mapped_);
  } catch (...) {
    ::munmap(memory, size);
    throw;
  }
}

ShardFile::~ShardFile() {
  if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

ShardFile::ShardFile(ShardFile&& other) noexcept
    : path_(std::move(other.path_)),
      header_(other.header_),
      mapped_(std::exchange(other.mapped_, {})) {}

void ShardFile::verify() const {
  const auto payload = mapped_.subspan(sizeof(RawHeader));
  if (header_.token_bytes == 2) {
    verify_tokens<uint16_t>(path_, header_, payload);
  } else {
    verify_tokens<uint32_t>(path_, header_, payload);
  }
}

void ShardFile::read(int64_t offset, std::span<int64_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  FARSTEP_CHECK(offset >= 0 && count <= header_.num_tokens - offset, "{} tokens from {} on of {}",
                count, offset, path_.string());
  const auto payload = mapped_.subspan(sizeof(RawHeader));
  // Widened while they are copied, as a model takes 64 bits: no array between.
  const auto copy = [&](auto tokens) { std::copy_n(tokens.begin() + offset, count, out.begin()); };
  if (header_.token_bytes == 2) {
    copy(tokens_of<uint16_t>(payload));
  } else {
    copy(tokens_of<uint32_t>(payload));
  }
}

}  // namespace farstep
