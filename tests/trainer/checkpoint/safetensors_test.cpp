#include "trainer/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/checkpoint/owned_tensors.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/safetensors_writer.h"

using namespace farstep;
using Catch::Contains;

namespace {

// A file with this header and so many zero bytes of data.
std::string file_with(const std::string& header, std::size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\0');
}

std::string error_of(const std::filesystem::path& path, const std::string& bytes) {
  write_file(path, bytes);
  try {
    SafetensorsFile file(path);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what was written is read: all dtypes and shapes") {
  const TemporaryFolder folder;
  const auto tensors = tensors_of_all_kinds();
  const auto written = write_safetensors(folder / "t", tensors.buffers(), {{"format", "pt"}});
  const auto content = read_file(folder / "t");
  CHECK(written.bytes == int64_t(content.size()));
  CHECK(written.checksum == checksum(std::as_bytes(std::span(content))));

  const SafetensorsFile file(folder / "t");
  CHECK(file.entries().size() == tensors.buffers().size());
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}});
  for (const auto& buffer : tensors.buffers()) {
    const auto& entry = file.at(buffer.name);
    CHECK(entry.dtype == buffer.dtype);
    CHECK(entry.shape == buffer.shape);
    CHECK(std::equal(entry.bytes.begin(), entry.bytes.end(), buffer.bytes.begin(),
                     buffer.bytes.end()));
    CHECK(reinterpret_cast<uintptr_t>(entry.bytes.data()) % size_of(entry.dtype) == 0);
  }
  auto copy = tensors.zeros();
  file.copy_all(copy.buffers());
  CHECK(copy == tensors);
}

TEST_CASE("a file without tensors is a file") {
  const TemporaryFolder folder;
  write_safetensors(folder / "t", {});
  CHECK(SafetensorsFile(folder / "t").entries().empty());
}

TEST_CASE("the bytes of a file are those of the format") {
  const TemporaryFolder folder;
  OwnedTensors tensors;
  tensors.add_values("w", {1, 2}, {1.0F, -2.0F});
  write_safetensors(folder / "t", tensors.buffers(), {{"k", "v"}});
  const std::string header =
      R"({"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  const std::string data("\x00\x00\x80\x3F\x00\x00\x00\xC0", 8);
  const std::string length{char(header.size() + padding.size()), 0, 0, 0, 0, 0, 0, 0};
  CHECK(read_file(folder / "t") == length + header + padding + data);
}

TEST_CASE("a file longer than one write is whole") {
  const TemporaryFolder folder;
  OwnedTensors tensors;
  tensors.add_values("big", {3, 500'001}, std::vector<float>(1'500'003, 1.5F));
  const auto written = write_safetensors(folder / "t", tensors.buffers());
  const auto content = read_file(folder / "t");
  CHECK(written.checksum == checksum(std::as_bytes(std::span(content))));
  auto copy = tensors.zeros();
  SafetensorsFile(folder / "t").copy_all(copy.buffers());
  CHECK(copy == tensors);
}

TEST_CASE("halves become the floats they stand for") {
  const TemporaryFolder folder;
  OwnedTensors tensors;
  tensors.add("f16", DType::kF16, {65536});
  tensors.add("bf16", DType::kBF16, {65536});
  for (auto& buffer : tensors.buffers()) {
    for (std::size_t i = 0; i < 65536; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      std::memcpy(buffer.bytes.data() + 2 * i, &bits, 2);
    }
  }
  write_safetensors(folder / "t", tensors.buffers());
  const SafetensorsFile file(folder / "t");
  std::vector<float> f16(65536), bf16(65536);
  file.copy_as_f32("f16", f16);
  file.copy_as_f32("bf16", bf16);
  for (uint32_t i = 0; i < 65536; ++i) {
    REQUIRE(std::bit_cast<uint32_t>(bf16[i]) == i << 16);
    // value = (-1)^sign 2^(exponent - 25) (1024 + mantissa), without the 1024 in subnormals
    const int exponent = int(i >> 10 & 31), mantissa = int(i & 1023);
    const float sign = i >> 15 ? -1.0F : 1.0F;
    if (exponent == 31) {
      REQUIRE(std::signbit(f16[i]) == bool(i >> 15));
      REQUIRE((mantissa == 0 ? std::isinf(f16[i]) : std::isnan(f16[i])));
    } else {
      const float expected = exponent == 0 ? std::ldexp(float(mantissa), -24)
                                           : std::ldexp(float(1024 + mantissa), exponent - 25);
      REQUIRE(std::bit_cast<uint32_t>(f16[i]) == std::bit_cast<uint32_t>(sign * expected));
    }
  }
}

TEST_CASE("a copy refuses other names and types and sizes") {
  const TemporaryFolder folder;
  OwnedTensors tensors;
  tensors.add("a", DType::kF32, {2, 3});
  tensors.add("n", DType::kI64, {1});
  write_safetensors(folder / "t", tensors.buffers());
  const SafetensorsFile file(folder / "t");
  std::vector<float> six(6), five(5), one(1);
  file.copy_as_f32("a", six);
  CHECK_THROWS_WITH(file.copy_as_f32("a", five), Contains("/t: tensor 'a' has shape [2, 3]"));
  CHECK_THROWS_WITH(file.copy_as_f32("n", one), Contains("is I64"));
  CHECK_THROWS_WITH(file.copy_as_f32("b", six), Contains("has no tensor 'b'"));

  const auto refusal = [&](auto change) -> std::string {
    auto other = tensors.zeros();
    change(other);
    try {
      file.copy_all(other.buffers());
    } catch (const DataError& error) {
      for (const auto& buffer : other.buffers()) {  // untouched
        CHECK(std::count(buffer.bytes.begin(), buffer.bytes.end(), std::byte{0}) ==
              std::ptrdiff_t(buffer.bytes.size()));
      }
      return error.what();
    }
    return "";
  };
  CHECK(refusal([](auto&) {}).empty());
  CHECK_THAT(refusal([](auto& t) { t.buffers()[0].name = "b"; }), Contains("lacks the tensors b"));
  CHECK_THAT(refusal([](auto& t) { t.buffers().pop_back(); }), Contains("do not belong here: n"));
  CHECK_THAT(refusal([](auto& t) {
               t.buffers()[0].shape = {3, 2};
             }),
             Contains("has shape [2, 3], not [3, 2]"));
  CHECK_THAT(refusal([](auto& t) { t.buffers()[1].dtype = DType::kF32; }),
             Contains("is I64, not F32"));
}

TEST_CASE("a malformed file is refused with its name and an offset") {
  const TemporaryFolder folder;
  const auto path = folder / "bad";
  const auto tensor = [](const std::string& text) { return R"({"t":)" + text + "}"; };
  const std::string good = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  REQUIRE(error_of(path, file_with(tensor(good), 8)).empty());

  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "is empty"},
      {"1234567", "offset 7: the file ends"},
      {std::string(8, '\xFF'), "offset 0: no header of 18446744073709551615 bytes"},
      {file_with(tensor(good), 8).substr(0, 20), "offset 0: no header"},
      {file_with("", 0), "offset 8: the header is refused: not valid JSON"},
      {file_with("{\"\xFF\":1}", 0), "offset 8: the header is refused: not valid JSON"},
      {file_with("[]", 0), "not a JSON object"},
      {file_with(tensor("3"), 0), "tensor 't' is not described"},
      {file_with(tensor(R"({"dtype":"F32","shape":[2]})"), 8), "tensor 't' is not described"},
      {file_with(tensor(R"({"dtype":4,"shape":[2],"data_offsets":[0,8]})"), 8), "not described"},
      {file_with(tensor(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), 8),
       "not described"},
      {file_with(tensor(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,8]})"), 8),
       "not described"},
      {file_with(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,9]})"), 8),
       "not described"},
      {file_with(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]})"),
                 8),
       "not described"},
      {file_with(tensor(R"({"dtype":"Q4","shape":[2],"data_offsets":[0,8]})"), 8), "dtype 'Q4'"},
      {file_with(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), 8), "8 to 0"},
      {file_with(tensor(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})"), 8),
       "0 to 16 of 8"},
      {file_with(tensor(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), 8), "has 8 bytes"},
      {file_with(
           tensor(R"({"dtype":"F32","shape":[4611686018427387904,4,2],"data_offsets":[0,8]})"), 8),
       "has 8 bytes"},
      {file_with(tensor(good), 9), "the file at"},
      {file_with(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[1,9]})"), 9),
       "no tensor has these bytes; 't' comes next"},
      {file_with(R"({"a":)" + good + R"(,"b":)" + good + "}", 8),
       "tensor 'b' begins here and overlaps the one before"},
      {file_with(R"({"t":)" + good + R"(,"t":)" + good + "}", 8), "member 't' stands twice"},
      {file_with(R"({"__metadata__":[],"t":)" + good + "}", 8), "__metadata__ is not an object"},
      {file_with(R"({"__metadata__":{"k":1},"t":)" + good + "}", 8), "__metadata__ has a value"}};
  for (const auto& [bytes, message] : cases) {
    INFO(message);
    CHECK_THAT(error_of(path, bytes), Contains(path.string()) && Contains(message));
    if (!bytes.empty()) CHECK_THAT(error_of(path, bytes), Contains("copy it") || Contains("fp16"));
  }
}

TEST_CASE("a file that is not there or is a folder is refused") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(SafetensorsFile(folder / "none"), DataError);
  CHECK_THROWS_WITH(SafetensorsFile(folder.path()), Contains("not a file"));
}

TEST_CASE("a full disk is a DataError that says where") {
  OwnedTensors tensors;
  tensors.add("t", DType::kF32, {1000});
  CHECK_THROWS_WITH(write_safetensors("/dev/full", tensors.buffers()),
                    Contains("/dev/full: offset 0: cannot be written: No space left"));
  CHECK_THROWS_AS(write_safetensors("/no/such/folder/t", tensors.buffers()), DataError);
}

TEST_CASE("buffers that contradict themselves are a bug") {
  const TemporaryFolder folder;
  OwnedTensors tensors;
  tensors.add("t", DType::kF32, {4});
  tensors.add("u", DType::kF32, {4});
  tensors.buffers()[1].name = "t";
  CHECK_THROWS_AS(write_safetensors(folder / "t", tensors.buffers()), InternalError);
  tensors.buffers()[1].name = "u";
  tensors.buffers()[1].shape = {5};
  CHECK_THROWS_AS(write_safetensors(folder / "t", tensors.buffers()), InternalError);
}
