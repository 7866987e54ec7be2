// A safetensors file, of a checkpoint or of another program.

#include <cstring>

#include "tests/fuzz/fuzz_input.h"
#include "trainer/checkpoint/safetensors.h"

using namespace farstep;

namespace {

void read_all(const SafetensorsFile& file) {
  for (const auto& entry : file.entries()) {
    if (entry.dtype == DType::kI64) continue;
    std::vector<float> values(entry.bytes.size() / size_of(entry.dtype));
    file.copy_as_f32(entry.name, values);
  }
}

// A file whose header has the length that it says: the input's text up to the first line feed.
std::string framed(std::string_view input) {
  const auto header = input.substr(0, input.find('\n'));
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  file += header;
  return file.append(input.substr(std::min(header.size() + 1, input.size())));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto input = text_of(data, size);
  accept_or_refuse([&] { read_all(SafetensorsFile(file_with(input))); });
  accept_or_refuse([&] { read_all(SafetensorsFile(file_with(framed(input)))); });
  return 0;
}
