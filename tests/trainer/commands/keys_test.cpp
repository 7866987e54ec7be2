#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"
#include "trainer/commands/command.h"

using namespace farstep;
using Catch::Contains;

TEST_CASE("farstep keys makes, adds and revokes, and refuses what would overwrite a key") {
  const TemporaryFolder folder;
  const auto keys = (folder / "keys").string();
  CHECK(keys_command({"--folder", keys, "--run", "mine", "--sites", "seoul", "lyon"}) == 0);
  CHECK(keys_command({"--folder", keys, "--sites", "busan"}) == 0);
  CHECK(keys_command({"--folder", keys, "--revoke", "lyon"}) == 0);
  CHECK(std::filesystem::exists(folder.path() / "keys" / "sites" / "busan" / "site.key"));
  CHECK_THROWS_WITH(keys_command({"--folder", keys, "--run", "mine", "--sites", "oslo"}),
                    Contains("not overwritten"));
  CHECK_THROWS_WITH(keys_command({"--folder", keys, "--sites", "seoul"}),
                    Contains("not overwritten"));
  CHECK_THROWS_WITH(keys_command({"--folder", keys}), Contains("--sites or --revoke"));
  CHECK_THROWS_AS(keys_command({"--folder", keys, "--run", "mine", "--revoke", "seoul"}),
                  ConfigError);
}
