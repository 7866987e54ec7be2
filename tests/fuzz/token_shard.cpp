// A token shard: as it is, and with right checksums and count, behind which the rest hides.

#include <array>
#include <cstring>

#include "tests/fuzz/fuzz_input.h"
#include "trainer/data/tokens/token_dataset.h"

using namespace farstep;

namespace {

// Places in the header, which docs/token_shards.md describes.
constexpr std::size_t kWidth = 12, kCount = 24, kPayloadSum = 32, kHeaderSum = 40, kPayload = 48;

void put(std::string& file, std::size_t place, uint64_t value) {
  std::memcpy(file.data() + place, &value, sizeof(value));
}

std::string with_right_sums(std::string_view input) {
  std::string file(input);
  if (file.size() < kPayload) return file;
  const uint64_t width = file[kWidth] == 4 ? 4 : 2;
  file.resize(file.size() - (file.size() - kPayload) % width);
  const auto bytes = std::as_bytes(std::span(file));
  put(file, kCount, (file.size() - kPayload) / width);
  put(file, kPayloadSum, checksum(bytes.subspan(kPayload)));
  put(file, kHeaderSum, checksum(bytes.first(kHeaderSum)));
  return file;
}

void read_dataset(const std::string& shard) {
  write_file(scratch_folder() / shard_name(kTrainSplit, 0), shard);
  accept_or_refuse([&] {
    const TokenDataset dataset(scratch_folder().path(), kTrainSplit);
    std::array<int64_t, 8> tokens{};
    const int64_t windows = dataset.num_windows(std::ssize(tokens));
    dataset.read((windows - 1) * std::ssize(tokens), tokens);
    for (const int64_t token : tokens) {
      FARSTEP_CHECK(token >= 0 && token < dataset.vocabulary(), "token {}", token);
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  read_dataset(std::string(text_of(data, size)));
  read_dataset(with_right_sums(text_of(data, size)));
  return 0;
}
