#include "trainer/run/site_data.h"

namespace farstep {

SiteData::SiteData(const std::string& folder) : training(folder, kTrainSplit) {
  if (TokenDataset::has_split(folder, kValidationSplit)) {
    validation.emplace(folder, kValidationSplit);
  }
}

uint64_t SiteData::digest() const {
  return training.digest() ^ (validation ? validation->digest() : 0);
}

}  // namespace farstep
