#include "trainer/tasks/site_data.h"

#include "tests/support/catch.h"
#include "tests/trainer/model/convnet/small_images.h"
#include "tests/trainer/tasks/small_tokens.h"
#include "trainer/base/error.h"

namespace farstep {

using Catch::Contains;

TEST_CASE("a site's folder has tokens or images, whether the family is known or not") {
  const SmallTokens tokens;
  const SmallImages images;
  using Families = std::vector<std::optional<ModelFamily>>;
  for (const auto family : Families{std::nullopt, ModelFamily::kLanguage}) {
    SiteData data(tokens.path(), family);
    CHECK_FALSE(data.is_open());
    CHECK(data.digest() == TokenData(tokens.path()).digest());
    CHECK(data.is_open());
    CHECK(data.text() == "1000 tokens to train on, 1000 to validate on");
    CHECK(data.tokens() == data.tokens());
    CHECK_THROWS_WITH(data.images(), Contains(tokens.path().string() + ": has token shards"));
  }
  for (const auto family : Families{std::nullopt, ModelFamily::kImages}) {
    SiteData data(images.path(), family);
    CHECK(data.digest() == ImageData(images.path()).digest());
    CHECK_THAT(data.text(), Catch::StartsWith("64 images of 1 x 8 x 8 in 4 classes"));
    CHECK(data.images() == data.images());
    CHECK_THROWS_WITH(data.tokens(), Contains(images.path().string() + ": has images"));
  }
}

TEST_CASE("a folder without the data of the run's family is refused by name") {
  const TemporaryFolder empty;
  CHECK_THROWS_WITH(SiteData(empty.path(), ModelFamily::kImages).digest(),
                    Contains(empty.path().string() + ": has no images"));
  CHECK_THROWS_WITH(SiteData(empty.path(), std::nullopt).digest(), Contains("farstep tokenize"));
  CHECK_THROWS_WITH(SiteData(SmallImages().path(), ModelFamily::kLanguage).digest(),
                    Contains("farstep tokenize"));
}

}  // namespace farstep
