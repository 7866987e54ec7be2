#include "trainer/doctor/keys.h"

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "wan/secure/key_folder.h"

namespace farstep {

namespace {

using Catch::Contains;
namespace fs = std::filesystem;

// Keys of the sites a and b of a run.
class Keys {
 public:
  explicit Keys(int64_t days = 365) : folder_(temporary_ / "keys") {
    wan::make_key_folder(folder_, "mine");
    wan::add_site_keys(folder_, {"a", "b"}, days);
  }
  const fs::path& folder() const { return folder_; }
  fs::path of(const std::string& site) const { return wan::site_key_folder(folder_, site); }
  Finding finding(const std::string& of_site = "a", const std::string& run_name = "mine") const {
    SiteConfig site;
    site.name = "a";
    site.network.keys = of(of_site).string();
    RunConfig run;
    run.name = run_name;
    return key_finding(site, run);
  }

 private:
  const TemporaryFolder temporary_;
  const fs::path folder_;
};

}  // namespace

TEST_CASE("good keys are those of the site and the run, for a while") {
  const Keys keys;
  const auto good = keys.finding();
  CHECK(good.grade == Grade::kOk);
  CHECK_THAT(good.text, Contains("site a of run 'mine', valid for 365 days"));
  CHECK(key_finding(SiteConfig{}, std::nullopt).grade == Grade::kOk);
  const Keys short_ones(7);
  CHECK(short_ones.finding().grade == Grade::kWarning);
  CHECK_THAT(short_ones.finding().text, Contains("`farstep keys`"));
}

TEST_CASE("keys of another site, of another run, readable by others, revoked or lost are told") {
  const Keys keys;
  CHECK(keys.finding("b").exit_code == 2);
  CHECK_THAT(keys.finding("b").text, Contains("this is site a"));
  CHECK(keys.finding("a", "other").grade == Grade::kWarning);
  CHECK(keys.finding("c").exit_code == 3);

  fs::copy_file(keys.folder() / "authority.key", keys.of("a") / "authority.key");
  CHECK_THAT(keys.finding().text, Contains("can make a key of any site"));
  fs::remove(keys.of("a") / "authority.key");

  const auto key = keys.of("a") / wan::kSiteKeyFile;
  fs::permissions(key, fs::perms::others_read, fs::perm_options::add);
  CHECK(keys.finding().exit_code == 3);
  CHECK_THAT(keys.finding().text, Contains("chmod 600"));
  fs::permissions(key, fs::perms::owner_read | fs::perms::owner_write);
  CHECK(keys.finding().grade == Grade::kOk);

  wan::revoke_site_keys(keys.folder(), {"a"});
  CHECK(keys.finding().exit_code == 3);
  CHECK_THAT(keys.finding().text, Contains("revoked"));
}

}  // namespace farstep
