// Patterns of messages between all sites. They move bytes; what these mean is for the caller.
//
// Every site calls the same function with the same tag. All receives are posted before the first
// send. Own parts are copied in memory. Throw as Transfer::wait() does; then the content of what
// was to be received is undefined. Safe to call from several threads with different tags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wan/transport/transport.h"

namespace farstep {

// Sends parts_to_send[k] to site k and receives site k's part for this site into
// parts_to_receive[k]. Sizes may differ from pair to pair; sender and receiver must agree.
void all_to_all(Transport& transport, const Tag& tag,
                std::span<const std::span<const std::byte>> parts_to_send,
                std::span<const std::span<std::byte>> parts_to_receive);

// Sends `own` to every site; parts[k] becomes the own part of site k, this site's included.
// parts[rank] may be the same memory as `own`.
void all_gather(Transport& transport, const Tag& tag, std::span<const std::byte> own,
                std::span<const std::span<std::byte>> parts);

}  // namespace farstep
