// A file may come from anybody, so its header is not trusted: each offset, shape and length is
// checked against the file before memory is touched. Values are copied from the mapped file
// straight to where they are used.
#include "trainer/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "trainer/base/error.h"
#include "trainer/config/strict_json.h"

namespace farstep {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation

// mmap() of an empty file fails, and of a folder gives an unclear error; both get messages of their
// own. Mapped instead of read: a checkpoint of parameters and moments need not be in memory twice.
std::span<const std::byte> map_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  const bool found = descriptor >= 0 && ::fstat(descriptor, &status) == 0;
  const bool regular = found && S_ISREG(status.st_mode);
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = MAP_FAILED;
  if (regular && size > 0) {
    address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (address != MAP_FAILED) return {static_cast<const std::byte*>(address), size};
  throw DataError(fmt::format("{}: cannot be read: {}", path.string(),
                              !found     ? std::strerror(error)
                              : !regular ? "it is not a file"
                              : size > 0 ? std::strerror(error)
                                         : "it is empty"));
}

// Reads the header of a file and checks all its values, as it may come from a stranger.
class HeaderReader {
 public:
  // The length comes from the file, so it is checked before it is used.
  HeaderReader(const std::filesystem::path& path, std::span<const std::byte> file)
      : path_(path), file_(file) {
    uint64_t length = 0;
    if (file.size() < kLengthBytes) fail(file.size(), "the file ends within the header's length");
    std::memcpy(&length, file.data(), kLengthBytes);
    if (length > std::min(file.size() - kLengthBytes, kMaxHeaderBytes)) {
      fail(0, fmt::format("no header of {} bytes in a file of {}", length, file.size()));
    }
    data_ = file.subspan(kLengthBytes + length);
    const auto* text = reinterpret_cast<const char*>(file.data()) + kLengthBytes;
    try {
      // Its members are found by their order, so there may be any number of tensors.
      header_ = parse_strictly<json>({text, length}, {.members = kMaxHeaderBytes});
    } catch (const DataError& error) {
      fail(kLengthBytes, fmt::format("the header is refused: {}", error.what()));
    }
    if (!header_.is_object()) fail(kLengthBytes, "the header is not a JSON object");
  }

  std::map<std::string, std::string> metadata() const {
    std::map<std::string, std::string> metadata;
    if (!header_.contains(kMetadata)) return metadata;
    if (!header_[kMetadata].is_object()) fail(kLengthBytes, "__metadata__ is not an object");
    for (const auto& [key, value] : header_[kMetadata].items()) {
      if (!value.is_string()) fail(kLengthBytes, "__metadata__ has a value that is no string");
      metadata[key] = value.get<std::string>();
    }
    return metadata;
  }

  // Returns all tensors in order of place. They must cover the data exactly once.
  std::vector<SafetensorsEntry> entries() const {
    std::vector<SafetensorsEntry> entries;
    for (const auto& [name, member] : header_.items()) {
      if (name != kMetadata) entries.push_back(entry(name, member));
    }
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
    });
    // Gaps and overlaps would hide data, and the format forbids them.
    const std::byte* end = data_.data();
    for (const auto& entry : entries) {
      const auto begin = offset_of(entry.bytes.data());
      if (begin < offset_of(end)) {
        fail(begin,
             fmt::format("tensor '{}' begins here and overlaps the one before, which ends at {}",
                         entry.name, offset_of(end)));
      }
      if (begin > offset_of(end)) {
        fail(offset_of(end),
             fmt::format("no tensor has these bytes; '{}' comes next, at {}", entry.name, begin));
      }
      end += entry.bytes.size();
    }
    if (offset_of(end) != file_.size()) {
      fail(offset_of(end), fmt::format("the last tensor ends here, the file at {}", file_.size()));
    }
    return entries;
  }

 private:
  static constexpr const char* kMetadata = "__metadata__";
  static constexpr const char* kCopyAgain =
      "the file is damaged or not whole: copy it again from where it came from";

  // Shape and offsets must describe the same number of bytes, inside the file.
  SafetensorsEntry entry(const std::string& name, const json& member) const {
    const auto refuse = [&](const std::string& message, const char* remedy = kCopyAgain) {
      fail(kLengthBytes, fmt::format("tensor '{}' {}", name, message), remedy);
    };
    if (!member.is_object() || member.size() != 3 || !member.contains("dtype") ||
        !member["dtype"].is_string() || !is_list(member, "shape") ||
        !is_list(member, "data_offsets") || member["data_offsets"].size() != 2) {
      refuse("is not described by dtype, shape and two data_offsets");
    }
    SafetensorsEntry entry{name, DType::kF32, {}, {}};
    try {
      entry.dtype = dtype_from_name(member["dtype"].get<std::string>());
    } catch (const DataError& error) {
      refuse(fmt::format("is not supported: {}", error.what()),
             "choose a model in fp32, bf16 or fp16");
    }
    entry.shape = member["shape"].get<std::vector<int64_t>>();
    // is_list() has checked that these are numbers.
    const auto begin = member["data_offsets"][0].get<uint64_t>();
    const auto end = member["data_offsets"][1].get<uint64_t>();
    if (begin > end || end > data_.size()) {
      refuse(fmt::format("lies at {} to {} of {} bytes", begin, end, data_.size()));
    }
    if (bytes_of(entry.dtype, entry.shape) != end - begin) {
      refuse(fmt::format("has {} bytes, which is not {} of shape {}", end - begin,
                         name_of(entry.dtype), entry.shape));
    }
    entry.bytes = data_.subspan(begin, end - begin);
    return entry;
  }

  // Whether the member is an array of integers from 0 to 2^63 - 1.
  static bool is_list(const json& object, const char* key) {
    // Casts would turn negative and fractional numbers into valid ones.
    return object.contains(key) && object[key].is_array() &&
           std::all_of(object[key].begin(), object[key].end(), [](const json& number) {
             return number.is_number_unsigned() && number.get<uint64_t>() <= INT64_MAX;
           });
  }

  // Returns the bytes of a tensor. If they overflow, a number that no file has.
  static uint64_t bytes_of(DType dtype, std::span<const int64_t> shape) {
    if (std::count(shape.begin(), shape.end(), 0) > 0) return 0;
    uint64_t bytes = size_of(dtype);
    for (const int64_t extent : shape) {
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) return UINT64_MAX;
    }
    return bytes;
  }

  std::size_t offset_of(const std::byte* place) const {
    return static_cast<std::size_t>(place - file_.data());
  }

  [[noreturn]] void fail(std::size_t offset, const std::string& message,
                         const char* remedy = kCopyAgain) const {
    throw DataError(fmt::format("{}: offset {}: {}; {}", path_.string(), offset, message, remedy));
  }

  const std::filesystem::path& path_;
  std::span<const std::byte> file_;
  std::span<const std::byte> data_;
  json header_;
};

// bf16 is the upper half of an fp32, so nothing is rounded.
float f32_from_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

// Denormal halves have exponent 0; infinities and NaN have exponent 31.
float f32_from_f16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 31U;
  const uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0) return std::copysign(std::ldexp(float(mantissa), -24), sign ? -1.F : 1.F);
  const uint32_t wide_exponent = exponent == 31 ? 255 : exponent - 15 + 127;
  return std::bit_cast<float>(sign | wide_exponent << 23 | mantissa << 13);
}

void convert_halves(std::span<const std::byte> bytes, std::span<float> values,
                    float (*convert)(uint16_t)) {
  // By memcpy: a tensor of another program may begin at an odd address.
  for (std::size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    values[i] = convert(bits);
  }
}

// Returns "a, b and 4 more".
std::string shortened(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  auto text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + std::min(names.size(), kShown), ", "));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  const auto file = map_file(path);
  mapping_ = {file.data(), [size = file.size()](const std::byte* address) {
                ::munmap(const_cast<std::byte*>(address), size);
              }};
  const HeaderReader header(path_, file);
  metadata_ = header.metadata();
  entries_ = header.entries();
  for (std::size_t i = 0; i < entries_.size(); ++i) places_.emplace(entries_[i].name, i);
}

const SafetensorsEntry& SafetensorsFile::at(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) {
    throw DataError(fmt::format("{}: has no tensor '{}'", path_.string(), name));
  }
  return entries_[found->second];
}

void SafetensorsFile::copy_as_f32(const std::string& name, std::span<float> values) const {
  const auto& entry = at(name);
  // A step number read as a float would pass for a weight.
  if (entry.dtype == DType::kI64) {
    throw DataError(
        fmt::format("{}: tensor '{}' is I64, not floating-point", path_.string(), name));
  }
  if (entry.bytes.size() != values.size() * size_of(entry.dtype)) {
    throw DataError(fmt::format("{}: tensor '{}' has shape {}, not {} elements", path_.string(),
                                name, entry.shape, values.size()));
  }
  if (entry.dtype == DType::kF32) {
    std::copy(entry.bytes.begin(), entry.bytes.end(), std::as_writable_bytes(values).begin());
  } else {
    convert_halves(entry.bytes, values, entry.dtype == DType::kBF16 ? f32_from_bf16 : f32_from_f16);
  }
}

// Checks all tensors first, so that a refused file changes nothing.
void SafetensorsFile::copy_all(const NamedBuffers& into) const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry.name);
  require_same_names(path_.string(), names, into);
  for (const auto& buffer : into) {
    const auto& entry = at(buffer.name);
    require_same_shape(path_.string(), entry, buffer);
    if (entry.dtype != buffer.dtype) {
      throw DataError(fmt::format("{}: tensor '{}' is {}, not {}", path_.string(), buffer.name,
                                  name_of(entry.dtype), name_of(buffer.dtype)));
    }
  }
  for (const auto& buffer : into) {
    const auto& bytes = at(buffer.name).bytes;
    std::copy(bytes.begin(), bytes.end(), buffer.bytes.begin());
  }
}

// Reports missing names first: they usually mean another model.
void require_same_names(const std::string& source, const std::vector<std::string>& present,
                        const NamedBuffers& wanted) {
  std::set<std::string> missing;
  std::vector<std::string> unexpected;
  for (const auto& buffer : wanted) missing.insert(buffer.name);
  for (const auto& name : present) {
    if (missing.erase(name) == 0) unexpected.push_back(name);
  }
  if (!missing.empty()) {
    throw DataError(fmt::format("{}: lacks the tensors {}", source,
                                shortened({missing.begin(), missing.end()})));
  }
  if (!unexpected.empty()) {
    throw DataError(
        fmt::format("{}: has tensors that do not belong here: {}", source, shortened(unexpected)));
  }
}

void require_same_shape(const std::string& source, const SafetensorsEntry& entry,
                        const NamedBuffer& wanted) {
  if (entry.shape != wanted.shape) {
    throw DataError(fmt::format("{}: tensor '{}' has shape {}, not {}", source, entry.name,
                                entry.shape, wanted.shape));
  }
}

}  // namespace farstep
