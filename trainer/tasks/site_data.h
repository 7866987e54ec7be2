// The data of a site: a folder of token shards, several of them, or one of labelled images.
//
// It is opened when it is first needed. A site without one may learn from another site what its
// task must know of the data. Not thread-safe: belongs to the thread that opens the site.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/json_fields.h"
#include "trainer/data/images/image_data.h"
#include "trainer/data/tokens/token_dataset.h"
#include "trainer/model/shape/model_config.h"

namespace farstep {

class SiteData {
 public:
  // `family` is that of the run, if it is known. Else what is in the folder decides.
  SiteData(std::vector<DataFolder> folders, std::optional<ModelFamily> family)
      : folders_(std::move(folders)), family_(family) {}
  SiteData(const std::filesystem::path& folder, std::optional<ModelFamily> family)
      : SiteData(folder.empty() ? std::vector<DataFolder>{}
                                : std::vector<DataFolder>{{.folder = folder.string()}},
                 family) {}

  // Reads the folders, unless that was done. Throws DataError as TokenData and ImageData do, and
  // for several folders of images.
  void open();
  bool is_open() const { return tokens_ || images_; }
  // Returns whether the site's config names a folder.
  bool is_named() const { return !folders_.empty(); }

  // What a site without a folder knows of the data: the other site's Family::data_facts(). Null:
  // nothing.
  void learn(Json facts) { facts_ = std::move(facts); }
  const Json& facts() const { return facts_; }

  // Open the folder if necessary. Throw DataError as open() does, or if it has data of another
  // family.
  std::shared_ptr<const TokenData> tokens();
  std::shared_ptr<const ImageData> images();

  // Returns the same 64-bit checksum at sites with equal data, and a text that tells how much it
  // is. Both open the folder.
  uint64_t digest();
  std::string text();

 private:
  std::string first() const { return folders_.empty() ? "" : folders_.front().folder; }

  const std::vector<DataFolder> folders_;
  const std::optional<ModelFamily> family_;
  Json facts_;
  // One of them once it is open.
  std::shared_ptr<const TokenData> tokens_;
  std::shared_ptr<const ImageData> images_;
};

}  // namespace farstep
