#include "trainer/tasks/site_data.h"

#include "trainer/base/error.h"

namespace farstep {

void SiteData::open() {
  if (is_open()) return;
  const auto found = ImageData::is_in(first()) ? ModelFamily::kImages : ModelFamily::kLanguage;
  if (family_.value_or(found) == ModelFamily::kLanguage) {
    tokens_ = std::make_shared<const TokenData>(folders_);
    return;
  }
  if (folders_.size() > 1) {
    throw DataError(
        fmt::format("{}: a run of images takes one folder; name it in `data`", folders_[1].folder));
  }
  images_ = std::make_shared<const ImageData>(first());
}

std::shared_ptr<const TokenData> SiteData::tokens() {
  open();
  if (!tokens_) {
    throw DataError(
        fmt::format("{}: has images; a run with model.family language needs token shards, which "
                    "`farstep tokenize` makes",
                    first()));
  }
  return tokens_;
}

std::shared_ptr<const ImageData> SiteData::images() {
  open();
  if (!images_) {
    throw DataError(fmt::format(
        "{}: has token shards; a run with model.family images needs a folder of images", first()));
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
  int64_t training = 0, validation = 0;
  for (const auto& source : tokens_->sources) {
    training += source.training.num_tokens();
    validation += source.validation ? source.validation->num_tokens() : 0;
  }
  return fmt::format("{} tokens to train on, {} to validate on", training, validation);
}

}  // namespace farstep
