// A site's copy of the run's data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/data/token_dataset.h"

namespace farstep {

struct SiteData {
  // Opens and verifies the dataset folder. Throws DataError.
  explicit SiteData(const std::string& folder);

  // Returns a checksum of both splits; sites with equal shards have the same.
  uint64_t digest() const;

  TokenDataset training;
  std::optional<TokenDataset> validation;  // nullopt if the folder has no shards of it
};

}  // namespace farstep
