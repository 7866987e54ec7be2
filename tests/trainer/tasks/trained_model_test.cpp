#include "trainer/tasks/trained_model.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"

namespace farstep {

using Catch::Contains;

TEST_CASE("a folder without a model is refused, and a net where a language model is needed") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(trained_model(folder.path()), Contains(folder.path().string() + ": neither"));
  for (const std::string type : {"llama", "farstep_convnet"}) {
    write_hf_folder(folder.path(), {{"model_type", type}}, {});
    CHECK(trained_model(folder.path()).config["model_type"] == type);
  }
  CHECK_THROWS_WITH(trained_language_model(folder.path(), "generate"),
                    Contains("config.json: is of an image classifier") &&
                        Contains("`farstep generate` is for language models"));
  write_hf_folder(folder.path(), {{"model_type", "llama"}}, {});
  CHECK_NOTHROW(trained_language_model(folder.path(), "generate"));
}

}  // namespace farstep
