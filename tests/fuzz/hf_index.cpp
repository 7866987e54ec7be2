// config.json and model.safetensors.index.json of a Hugging Face folder: the input's two parts,
// with a zero between them.

#include "tests/fuzz/fuzz_input.h"
#include "trainer/checkpoint/hf_folder.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto input = text_of(data, size);
  const auto config = input.substr(0, input.find('\0'));
  const auto& folder = scratch_folder();
  write_file(folder / "config.json", config);
  write_file(folder / "model.safetensors.index.json",
             input.substr(std::min(config.size() + 1, size)));
  write_file(folder / "shard", std::string_view("\2\0\0\0\0\0\0\0{}", 10));
  accept_or_refuse([&] { read_hf_folder(folder.path()); });
  return 0;
}
