// The order of writing makes a folder whole or absent. Secrets are never readable by others, not
// even between two system calls: modes are given when a file or folder is made.
#include "wan/secure/key_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <system_error>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "wan/secure/certificates.h"

namespace farstep::wan {

namespace {

namespace fs = std::filesystem;

constexpr const char* kAuthorityKeyFile = "authority.key";
constexpr const char* kSitesFolder = "sites";
// Site names begin with a letter or digit, so it is never one.
constexpr const char* kPartFolder = ".part";

[[noreturn]] void fail(const fs::path& path, const char* what, int error) {
  throw DataError(
      fmt::format("{}: {}: {}", path.string(), what, std::system_category().message(error)));
}

void make_private_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    fail(path, "cannot be made", errno);
  }
}

// O_EXCL follows no link and takes no file that somebody else made, and the mode is never wider.
void write_private_file(const fs::path& path, const std::string& content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) fail(path, "cannot be made", errno);
  const auto written = ::write(file, content.data(), content.size());
  int error = written < 0 ? errno : 0;
  // A short write to a regular file means that the disk is full.
  if (error == 0 && written != static_cast<ssize_t>(content.size())) error = ENOSPC;
  if (error == 0 && ::fsync(file) != 0) error = errno;
  ::close(file);
  if (error != 0) {
    ::unlink(path.c_str());
    fail(path, "cannot be written", error);
  }
  sync_to_disk(path.parent_path());
}

void replace_private_file(const fs::path& path, const std::string& content) {
  auto partial = path;
  partial += ".partial";
  // One of a call that was killed.
  if (::unlink(partial.c_str()) != 0 && errno != ENOENT) fail(partial, "cannot be removed", errno);
  write_private_file(partial, content);
  rename_durably(partial, path);
}

KeyPair read_authority(const fs::path& folder) {
  const auto key = folder / kAuthorityKeyFile;
  const auto certificate = folder / kAuthorityFile;
  if (!fs::exists(key)) {
    throw ConfigError(
        fmt::format("{}: there is no authority: make one with `farstep keys --folder {} --run NAME "
                    "--sites ...`",
                    key.string(), folder.string()));
  }
  KeyPair pair{read_key(read_file(key), key.string()),
               read_certificate(read_file(certificate), certificate.string())};
  if (X509_check_private_key(pair.certificate.get(), pair.key.get()) != 1) {
    throw DataError(fmt::format("{}: is not the key of {}: {}", key.string(), certificate.string(),
                                take_openssl_errors()));
  }
  return pair;
}

void check_names(const std::vector<std::string>& sites) {
  std::set<std::string> seen;
  for (const auto& site : sites) {
    check_certified_name(site);
    if (!seen.insert(site).second) {
      throw ConfigError(fmt::format("site \"{}\" is named twice", site));
    }
  }
}

}  // namespace

fs::path site_key_folder(const fs::path& folder, const std::string& site) {
  return folder / kSitesFolder / site;
}

void make_key_folder(const fs::path& folder, const std::string& run) {
  check_certified_name(run);
  if (fs::exists(folder / kAuthorityKeyFile)) {
    throw ConfigError(
        fmt::format("{}: there is an authority already, which is not overwritten: leave out --run "
                    "to add sites to it, or name another folder",
                    (folder / kAuthorityKeyFile).string()));
  }
  // Only the folder itself is private: its parents may be anybody's.
  if (folder.has_parent_path()) make_folder(folder.parent_path());
  make_private_folder(folder);
  make_private_folder(folder / kSitesFolder);
  const auto authority = make_authority(run);
  write_private_file(folder / kAuthorityFile, certificate_pem(authority.certificate.get()));
  write_private_file(folder / kRevocationsFile,
                     revocations_pem(revoke(authority, nullptr, {}).get()));
  // Last: a folder with this file is whole.
  write_private_file(folder / kAuthorityKeyFile, key_pem(authority.key.get()));
}

std::string run_of_key_folder(const fs::path& folder) {
  const auto certificate = folder / kAuthorityFile;
  if (!fs::exists(certificate)) return "";
  return identity_of(read_certificate(read_file(certificate), certificate.string()).get()).run;
}

void add_site_keys(const fs::path& folder, const std::vector<std::string>& sites, int64_t days) {
  check_names(sites);
  const auto authority = read_authority(folder);
  for (const auto& site : sites) {
    if (const auto place = site_key_folder(folder, site); fs::exists(place)) {
      throw ConfigError(fmt::format(
          "{}: site \"{}\" has a key already, which is not overwritten. To replace it: `farstep "
          "keys --folder {} --revoke {}`, then rename its folder, then `farstep keys --folder {} "
          "--sites {}`",
          place.string(), site, folder.string(), site, folder.string(), site));
    }
  }
  const auto run = identity_of(authority.certificate.get()).run;
  for (const auto& site : sites) {
    const auto place = site_key_folder(folder, site);
    const auto pair = issue(authority, {.run = run, .site = site}, -1, days);
    // Under a name that no site has, so that a folder of a site's name is whole.
    const auto part = folder / kSitesFolder / kPartFolder;
    fs::remove_all(part);
    make_private_folder(part);
    write_private_file(part / kAuthorityFile, certificate_pem(authority.certificate.get()));
    write_private_file(part / kRevocationsFile, read_file(folder / kRevocationsFile));
    write_private_file(part / kSiteCertificateFile, certificate_pem(pair.certificate.get()));
    write_private_file(part / kSiteKeyFile, key_pem(pair.key.get()));
    fs::rename(part, place);
  }
}

void revoke_site_keys(const fs::path& folder, const std::vector<std::string>& sites) {
  check_names(sites);
  const auto authority = read_authority(folder);
  std::vector<CertificateHandle> certificates;
  std::vector<const X509*> revoked;
  for (const auto& site : sites) {
    const auto place = site_key_folder(folder, site) / kSiteCertificateFile;
    if (!fs::exists(place)) {
      throw ConfigError(
          fmt::format("{}: site \"{}\" has no certificate here, so it cannot be "
                      "revoked",
                      place.string(), site));
    }
    certificates.push_back(read_certificate(read_file(place), place.string()));
    revoked.push_back(certificates.back().get());
  }
  const auto place = folder / kRevocationsFile;
  const auto before = read_revocations(read_file(place), place.string());
  const auto pem = revocations_pem(revoke(authority, before.get(), revoked).get());
  replace_private_file(place, pem);
  // Also the folders of sites that are not copied yet, so that their keys come with the newest
  // list.
  for (const auto& entry : fs::directory_iterator(folder / kSitesFolder)) {
    if (entry.is_directory()) replace_private_file(entry.path() / kRevocationsFile, pem);
  }
}

}  // namespace farstep::wan
