#include "trainer/data/loader.h"

#include <numeric>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"
#include "trainer/data/tokens/dataset_writer.h"
#include "trainer/data/tokens/token_batch.h"

namespace farstep {

namespace {

// A train split of the tokens 0 .. count-1, in shards of 307.
class CountingDataset {
 public:
  explicit CountingDataset(int32_t count) : dataset_(write(folder_.path(), count)) {}
  const TokenDataset& operator*() const { return dataset_; }

 private:
  static TokenDataset write(const std::filesystem::path& folder, int32_t count) {
    std::vector<int32_t> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), 0);
    SplitWriter writer(folder, kTrainSplit, 5000, 2, 307);
    writer.append(tokens, 1, count);
    writer.finish();
    return TokenDataset(folder, kTrainSplit);
  }

  TemporaryFolder folder_;
  TokenDataset dataset_;
};

// The steps of a site alone.
StepDraws steps_of(const RoundRange& range, int64_t first, int64_t batch) {
  return {.sites = {{.range = range, .first = first, .batch = batch}}};
}

// Numbers of the windows in a batch, having checked that each is length + 1 tokens from its place.
std::vector<int64_t> windows_of(const Batch& read) {
  const auto& batch = *static_cast<const TokenBatch*>(read.memory.get());
  const auto row = static_cast<std::size_t>(batch.length + 1);
  REQUIRE(batch.tokens.size() == static_cast<std::size_t>(batch.sequences) * row);
  std::vector<int64_t> windows;
  for (std::size_t start = 0; start < batch.tokens.size(); start += row) {
    const auto first = batch.tokens[start];
    REQUIRE(first % batch.length == 0);
    for (std::size_t i = 0; i < row; ++i) {
      REQUIRE(batch.tokens[start + i] == first + static_cast<int64_t>(i));
    }
    windows.push_back(first / batch.length);
  }
  return windows;
}

}  // namespace

TEST_CASE("sequential batches are the windows an outside program would take") {
  const CountingDataset dataset(1001);
  constexpr int64_t kLength = 10;  // 100 windows
  const TokenWindows windows(*dataset, kLength);
  Loader loader(windows, Sampler(DataOrder::kSequential, 0, windows.size()));
  RoundRange range{.place = 1, .num_members = 4};
  loader.begin(steps_of(range, 0, 3));
  CHECK(windows_of(loader.next()) == std::vector<int64_t>{1, 5, 9});
  CHECK(windows_of(loader.next()) == std::vector<int64_t>{13, 17, 21});
  range.pool = WindowPool(24);
  range.site_sequences = 6;
  loader.begin(steps_of(range, 0, 3));
  CHECK(windows_of(loader.next()) == std::vector<int64_t>{25, 29, 33});
}

TEST_CASE("batches follow the sampler whatever their size, and the range from any place") {
  const CountingDataset dataset(1001);
  constexpr int64_t kLength = 7;
  const TokenWindows windows(*dataset, kLength);
  const Sampler sampler(DataOrder::kShuffled, 3, windows.size());
  const RoundRange range{.pool = WindowPool(130), .site_sequences = 60, .offset = 5};
  Loader loader(windows, sampler);
  for (const int64_t sequences : {1, 2, 5, 40}) {
    for (const int64_t first : {0, 3}) {
      loader.begin(steps_of(range, first, sequences));
      int64_t k = first;
      for (int step = 0; step < 4; ++step) {
        const auto numbers = windows_of(loader.next());
        CHECK(std::ssize(numbers) == sequences);
        for (const auto number : numbers) CHECK(number == sampler.draw(range, k++).number);
      }
    }
  }
}

TEST_CASE("a round resumed in its middle goes on with the same windows") {
  const CountingDataset dataset(1001);
  constexpr int64_t kLength = 4;
  const TokenWindows windows(*dataset, kLength);
  const Sampler sampler(DataOrder::kShuffled, 3, windows.size());
  Loader whole(windows, sampler);
  whole.begin(steps_of({.offset = 10}, 0, 4));
  whole.next();
  whole.next();
  const auto expected = windows_of(whole.next());
  Loader resumed(windows, sampler);
  resumed.begin(steps_of({.offset = 10}, 8, 4));
  CHECK(windows_of(resumed.next()) == expected);
}

TEST_CASE("what goes wrong in the loader's thread reaches the caller") {
  const CountingDataset dataset(100);
  const TokenWindows windows(*dataset, 10);
  // A sampler over more windows than there are.
  Loader loader(windows, Sampler(DataOrder::kSequential, 0, 1000));
  loader.begin(steps_of({}, 8, 1));
  CHECK(windows_of(loader.next()) == std::vector<int64_t>{8});
  CHECK_THROWS_AS(loader.next(), InternalError);
}

TEST_CASE("a batch before the first round is a bug") {
  const CountingDataset dataset(100);
  const TokenWindows windows(*dataset, 10);
  Loader loader(windows, Sampler(DataOrder::kSequential, 0, 9));
  CHECK_THROWS_AS(loader.next(), InternalError);
  CHECK_THROWS_AS(loader.begin(steps_of({}, 0, 0)), InternalError);
}

}  // namespace farstep
