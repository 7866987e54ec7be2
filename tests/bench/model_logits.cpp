// Writes the logits that Farstep computes with a model folder, to compare them with those of other
// programs. Input and output are safetensors files: `tokens` (sequences, length), I64, and `logits`
// (sequences, length, vocabulary), F32.
//
//   build/release/model_logits MODEL_FOLDER tokens.safetensors logits.safetensors
#include <cstdio>
#include <cstring>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "trainer/base/error.h"
#include "trainer/checkpoint/safetensors_writer.h"
#include "trainer/model/language/model_folder.h"

namespace {

using namespace farstep;

void write_logits(const char* folder, const char* input, const char* output) {
  const at::NoGradGuard no_grad;
  const SafetensorsFile file(input);
  const auto& entry = file.at("tokens");
  if (entry.dtype != DType::kI64 || entry.shape.size() != 2) {
    throw DataError(fmt::format("{}: tokens are no I64 of two extents", input));
  }
  auto tokens = at::empty(entry.shape, at::kLong);
  std::memcpy(tokens.mutable_data_ptr<int64_t>(), entry.bytes.data(), entry.bytes.size());
  const auto logits = open_model(read_language_folder(folder))->logits(tokens).contiguous();
  const std::span values(logits.mutable_data_ptr<float>(),
                         static_cast<std::size_t>(logits.numel()));
  write_safetensors(
      output, {{"logits", DType::kF32, logits.sizes().vec(), std::as_writable_bytes(values)}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: model_logits MODEL_FOLDER TOKENS_FILE OUTPUT_FILE\n");
    return 2;
  }
  try {
    write_logits(argv[1], argv[2], argv[3]);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
  return 0;
}
