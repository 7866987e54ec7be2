#include "trainer/tasks/site_data.h"

#include "trainer/base/error.h"

namespace farstep {

void SiteData::open() {
  if (is_open()) return;
  const auto found = ImageData::is_in(folder_) ? ModelFamily::kImages : ModelFamily::kLanguage;
  if (family_.value_or(found) == ModelFamily::kImages) {
    images_ = std::make_shared<const ImageData>(folder_);
  } else {
    tokens_ = std::make_shared<const TokenData>(folder_);
  }
}

std::shared_ptr<const TokenData> SiteData::tokens() {
  open();
  if (!tokens_) {
    throw DataError(
        fmt::format("{}: has images; a run with model.family language needs token shards, which "
                    "`farstep tokenize` makes",
                    folder_.string()));
  }
  return tokens_;
}

std::shared_ptr<const ImageData> SiteData::images() {
  open();
  if (!images_) {
    throw DataError(
        fmt::format("{}: has token shards; a run with model.family images needs a folder of images",
                    folder_.string()));
  }
  return images_;
}

uint64_t SiteData::digest() {
  open();
  return tokens_ ? tokens_->digest() : images_->digest();
}

std::string SiteData::text() {
  open();
  if (images_) return images_->text();
  const auto& validation = tokens_->validation;
  return fmt::format("{} tokens to train on, {} to validate on", tokens_->training.num_tokens(),
                     validation ? validation->num_tokens() : 0);
}

}  // namespace farstep
