// The files of `farstep keys`: a run's authority, and a folder a site with what that site needs.
//
//   FOLDER/authority.key      signs; it never leaves this folder
//   FOLDER/authority.crt      the authority's certificate
//   FOLDER/revoked.crl        the revocation list
//   FOLDER/sites/NAME/        site.key, site.crt, authority.crt, revoked.crl: copied to the site
//
// Every file has mode 0600 and every folder 0700. No file is overwritten but the revocation lists.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace farstep::wan {

// What a site's folder has.
inline constexpr const char* kSiteKeyFile = "site.key";
inline constexpr const char* kSiteCertificateFile = "site.crt";
inline constexpr const char* kAuthorityFile = "authority.crt";
inline constexpr const char* kRevocationsFile = "revoked.crl";

// Makes `folder` with an authority of `run` and an empty revocation list. Throws ConfigError if the
// folder has an authority already, or the name is wrong; DataError if a file cannot be written.
void make_key_folder(const std::filesystem::path& folder, const std::string& run);

// Returns the run whose authority the folder has; empty if it has none. Throws DataError if the
// certificate is wrong.
std::string run_of_key_folder(const std::filesystem::path& folder);

// Makes keys of the sites, valid for `days`. Checks all names before it writes. Throws ConfigError
// if a name is wrong or a site has a folder already; DataError if a file is missing or wrong.
void add_site_keys(const std::filesystem::path& folder, const std::vector<std::string>& sites,
                   int64_t days);

// Adds the sites' certificates to the revocation list, here and in every site's folder. Throws
// ConfigError if a site has no certificate here.
void revoke_site_keys(const std::filesystem::path& folder, const std::vector<std::string>& sites);

// Returns the folder of a site's files.
std::filesystem::path site_key_folder(const std::filesystem::path& folder, const std::string& site);

}  // namespace farstep::wan
