#include "wan/secure/key_folder.h"

#include <sys/stat.h>

#include <openssl/x509v3.h>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "wan/secure/certificates.h"

namespace farstep::wan {
namespace {

using Catch::Contains;
namespace fs = std::filesystem;

int mode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return static_cast<int>(status.st_mode & 0777);
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

CertificateHandle certificate_at(const fs::path& path) {
  return read_certificate(read_file(path), path.string());
}

bool is_revoked(const fs::path& list_file, const fs::path& certificate_file) {
  const auto list = read_revocations(read_file(list_file), list_file.string());
  const auto certificate = certificate_at(certificate_file);
  X509_REVOKED* found = nullptr;
  return X509_CRL_get0_by_cert(list.get(), &found, certificate.get()) == 1;
}

TEST_CASE("a site's certificate names run and site, and the authority signed it") {
  const TemporaryFolder folder;
  const auto keys = folder / "keys";
  make_key_folder(keys, "mine");
  add_site_keys(keys, {"seoul", "lyon"}, 30);
  const auto authority = certificate_at(keys / kAuthorityFile);
  for (const std::string site : {"seoul", "lyon"}) {
    const auto place = site_key_folder(keys, site);
    const auto certificate = certificate_at(place / kSiteCertificateFile);
    CHECK(identity_of(certificate.get()) == Identity{"mine", site});
    CHECK(X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1);
    CHECK(X509_check_ca(certificate.get()) == 0);
    const auto key = read_key(read_file(place / kSiteKeyFile), "key");
    CHECK(X509_check_private_key(certificate.get(), key.get()) == 1);
    CHECK(read_file(place / kAuthorityFile) == read_file(keys / kAuthorityFile));
  }
}

TEST_CASE("only the owner can read the files of keys, whatever the umask") {
  const TemporaryFolder folder;
  const auto keys = folder / "keys";
  const auto before = ::umask(0);
  make_key_folder(keys, "mine");
  add_site_keys(keys, {"seoul"}, 30);
  revoke_site_keys(keys, {"seoul"});
  ::umask(before);
  CHECK(mode_of(keys) == 0700);
  const auto files = files_of(keys);
  CHECK(files.size() == 3 + 2 + 4);
  for (const auto& file : files) CHECK(mode_of(file) == (fs::is_directory(file) ? 0700 : 0600));
}

TEST_CASE("no key is overwritten, and a wrong name makes no file") {
  const TemporaryFolder folder;
  const auto keys = folder / "keys";
  make_key_folder(keys, "mine");
  add_site_keys(keys, {"seoul"}, 30);
  const auto authority = read_file(keys / "authority.key");
  const auto seoul = read_file(site_key_folder(keys, "seoul") / kSiteKeyFile);
  CHECK_THROWS_WITH(make_key_folder(keys, "mine"), Contains("not overwritten"));
  CHECK_THROWS_WITH(add_site_keys(keys, {"lyon", "seoul"}, 30), Contains("not overwritten"));
  for (const std::string name : {"", "..", "../lyon", "a/b", ".hidden", "-x", "a b", "\xc3\xa9"}) {
    CHECK_THROWS_AS(add_site_keys(keys, {"lyon", name}, 30), ConfigError);
    CHECK_THROWS_AS(make_key_folder(folder / "other", name), ConfigError);
  }
  CHECK_THROWS_WITH(add_site_keys(keys, {"lyon", "lyon"}, 30), Contains("twice"));
  CHECK_THROWS_AS(add_site_keys(keys, {std::string(65, 'a')}, 30), ConfigError);
  CHECK(read_file(keys / "authority.key") == authority);
  CHECK(read_file(site_key_folder(keys, "seoul") / kSiteKeyFile) == seoul);
  CHECK_FALSE(fs::exists(site_key_folder(keys, "lyon")));
  CHECK_FALSE(fs::exists(folder / "other"));
}

TEST_CASE("a revocation adds to those before, and every site's folder gets it") {
  const TemporaryFolder folder;
  const auto keys = folder / "keys";
  make_key_folder(keys, "mine");
  add_site_keys(keys, {"seoul", "lyon", "busan"}, 30);
  revoke_site_keys(keys, {"seoul"});
  revoke_site_keys(keys, {"busan"});
  for (const auto& list :
       {keys / kRevocationsFile, site_key_folder(keys, "lyon") / kRevocationsFile}) {
    CHECK(is_revoked(list, site_key_folder(keys, "seoul") / kSiteCertificateFile));
    CHECK(is_revoked(list, site_key_folder(keys, "busan") / kSiteCertificateFile));
    CHECK_FALSE(is_revoked(list, site_key_folder(keys, "lyon") / kSiteCertificateFile));
  }
  CHECK_THROWS_WITH(revoke_site_keys(keys, {"oslo"}), Contains("no certificate here"));
}

TEST_CASE("a missing or damaged authority is refused by name") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(add_site_keys(folder / "none", {"seoul"}, 30), Contains("--run NAME"));
  const auto keys = folder / "keys";
  make_key_folder(keys, "mine");
  make_key_folder(folder / "other", "mine");
  fs::copy_file(folder.path() / "other" / "authority.key", keys / "authority.key",
                fs::copy_options::overwrite_existing);
  CHECK_THROWS_WITH(add_site_keys(keys, {"seoul"}, 30), Contains("is not the key of"));
  write_file_durably(keys / "authority.key", "-----BEGIN nothing");
  CHECK_THROWS_WITH(add_site_keys(keys, {"seoul"}, 30),
                    Contains("authority.key") && Contains("no private key"));
}

}  // namespace
}  // namespace farstep::wan
