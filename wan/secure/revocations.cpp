// The file is looked up at each question instead of watched: a stat() costs a microsecond, and
// works on every file system. Serials are only added, so a list that is cut short lets nobody in
// again.
#include "wan/secure/revocations.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "wan/secure/certificates.h"

namespace farstep::wan {

namespace {

std::string bytes_of(const ASN1_INTEGER* serial) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(serial)),
          static_cast<std::size_t>(ASN1_STRING_length(serial))};
}

}  // namespace

Revocations::Revocations(std::filesystem::path file, CertificateHandle authority,
                         const X509_CRL* list)
    : file_(std::move(file)), authority_(std::move(authority)), read_version_(version()) {
  add(list);
}

bool Revocations::has(const X509* certificate) {
  const std::lock_guard lock(mutex_);
  read_if_changed();
  return serials_.contains(bytes_of(X509_get0_serialNumber(certificate)));
}

std::optional<Revocations::Version> Revocations::version() const {
  struct stat status {};
  if (::stat(file_.c_str(), &status) != 0) return std::nullopt;
  return Version{status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

void Revocations::read_if_changed() {
  const auto newest = version();
  if (!newest || newest == read_version_) return;
  // Also if reading fails below, so that a damaged list is logged once.
  read_version_ = newest;
  try {
    const auto list = read_revocations(read_file(file_), file_.string());
    if (X509_CRL_verify(list.get(), X509_get0_pubkey(authority_.get())) != 1) {
      take_openssl_errors();
      throw DataError(fmt::format("{}: another authority has signed it", file_.string()));
    }
    add(list.get());
    spdlog::info("{}: read again; {} certificates are revoked", file_.string(), serials_.size());
  } catch (const Error& error) {
    spdlog::error("{}; this site keeps to the list that it had", error.what());
  }
}

void Revocations::add(const X509_CRL* list) {
  auto* revoked = X509_CRL_get_REVOKED(const_cast<X509_CRL*>(list));  // which it does not change
  for (int i = 0; i < sk_X509_REVOKED_num(revoked); ++i) {
    serials_.insert(bytes_of(X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(revoked, i))));
  }
}

}  // namespace farstep::wan
