// A folder of token shards for tests.
#pragma once

#include <numeric>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "trainer/data/tokens/dataset_writer.h"
#include "trainer/data/tokens/token_dataset.h"

namespace farstep {

// Both splits are the tokens 0 to 999.
class SmallTokens {
 public:
  SmallTokens() {
    std::vector<int32_t> tokens(1000);
    std::iota(tokens.begin(), tokens.end(), 0);
    for (const auto split : {kTrainSplit, kValidationSplit}) {
      SplitWriter writer(folder_.path(), split, 1000, 2, 1000);
      writer.append(tokens, 1, 1000);
      writer.finish();
    }
  }
  std::filesystem::path path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace farstep
