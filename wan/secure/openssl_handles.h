// Owners of OpenSSL's objects, and its errors as text.
#pragma once

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace farstep::wan {

namespace detail {
template <auto kFree>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
}  // namespace detail

using KeyHandle = std::unique_ptr<EVP_PKEY, detail::FreedBy<EVP_PKEY_free>>;
using CertificateHandle = std::unique_ptr<X509, detail::FreedBy<X509_free>>;
using RevocationsHandle = std::unique_ptr<X509_CRL, detail::FreedBy<X509_CRL_free>>;
using ContextHandle = std::unique_ptr<SSL_CTX, detail::FreedBy<SSL_CTX_free>>;
using SslHandle = std::unique_ptr<SSL, detail::FreedBy<SSL_free>>;

// Returns the reasons of OpenSSL's last failure in this thread, and forgets them.
std::string take_openssl_errors();

// Throws InternalError with `what` and OpenSSL's reasons unless `succeeded`. For calls that fail
// only if memory is short or the program is wrong.
void check_openssl(bool succeeded, const char* what);

}  // namespace farstep::wan
