// Why a TLS handshake failed, as text.
//
// Where it failed for the dates of a certificate, either the certificate is at fault or one of two
// clocks. So each hello has the sender's clock: the first four bytes of its random value are
// seconds since 1970, as in TLS 1.2 (RFC 5246, 7.4.1.2); TLS 1.3 leaves the value to the sender.
// Nothing proves the time of a peer that was refused, and it is used for messages only.
#pragma once

#include <cstdint>
#include <string>

#include "wan/secure/openssl_handles.h"

namespace farstep::wan {

// Lets both ends of the context's connections tell their clock in their hello.
void tell_clock(SSL_CTX* context);

// Returns why the last call of the connection failed: what this end has against the peer's
// certificate, else OpenSSL's reasons of this thread, which it forgets. What is to be looked at
// follows: if it is about dates, by how much the two clocks differ.
std::string handshake_fault(const SSL* ssl);

// Returns the sentence about two clocks in seconds since 1970, modulo 2^32.
std::string clock_remark(uint32_t own, uint32_t of_peer);

}  // namespace farstep::wan
