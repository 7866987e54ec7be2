#include "wan/secure/revocations.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/wan/secure/sites.h"
#include "wan/secure/certificates.h"

namespace farstep::wan {
namespace {

std::string list_of(const KeyPair& authority, const std::vector<const X509*>& revoked) {
  return revocations_pem(revoke(authority, nullptr, revoked).get());
}

TEST_CASE("a revocation list is read again when its file is replaced") {
  const TemporaryFolder folder;
  const auto file = folder / "revoked.crl";
  auto time = std::filesystem::file_time_type::clock::now();
  // The clock of files may tick slowly.
  const auto write = [&](const std::string& text) {
    write_file(file, text);
    std::filesystem::last_write_time(file, time += std::chrono::seconds(1));
  };
  const Authority authority, other;
  const auto seoul = authority.site("seoul"), lyon = authority.site("lyon");
  write(list_of(authority.pair(), {seoul.certificate.get()}));
  const auto first = read_revocations(list_of(authority.pair(), {seoul.certificate.get()}), "it");
  Revocations revocations(file, std::move(copy_of(authority.pair()).certificate), first.get());
  CHECK(revocations.has(seoul.certificate.get()));
  CHECK_FALSE(revocations.has(lyon.certificate.get()));
  // Damaged, of another authority, and not there.
  write("no list");
  CHECK_FALSE(revocations.has(lyon.certificate.get()));
  write(list_of(other.pair(), {lyon.certificate.get()}));
  CHECK_FALSE(revocations.has(lyon.certificate.get()));
  std::filesystem::remove(file);
  CHECK_FALSE(revocations.has(lyon.certificate.get()));
  // A newer one counts, and an older one takes nothing back.
  write(list_of(authority.pair(), {lyon.certificate.get()}));
  CHECK(revocations.has(lyon.certificate.get()));
  CHECK(revocations.has(seoul.certificate.get()));
  write(list_of(authority.pair(), {}));
  CHECK(revocations.has(lyon.certificate.get()));
}

TEST_CASE("without a file the first list counts") {
  const Authority authority;
  const auto seoul = authority.site("seoul");
  const auto list = revoke(authority.pair(), nullptr, {seoul.certificate.get()});
  Revocations revocations({}, std::move(copy_of(authority.pair()).certificate), list.get());
  CHECK(revocations.has(seoul.certificate.get()));
  CHECK_FALSE(revocations.has(authority.site("lyon").certificate.get()));
}

}  // namespace
}  // namespace farstep::wan
