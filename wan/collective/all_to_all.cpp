#include "wan/collective/all_to_all.h"

#include <cstring>
#include <memory>
#include <vector>

#include "trainer/base/error.h"

namespace farstep {

void all_to_all(Transport& transport, const Tag& tag,
                std::span<const std::span<const std::byte>> parts_to_send,
                std::span<const std::span<std::byte>> parts_to_receive) {
  const int size = transport.size();
  const int rank = transport.rank();
  FARSTEP_CHECK(parts_to_send.size() == static_cast<std::size_t>(size) &&
                    parts_to_receive.size() == static_cast<std::size_t>(size),
                "{} parts to send and {} to receive for {} sites", parts_to_send.size(),
                parts_to_receive.size(), size);
  const auto own = parts_to_send[rank];
  FARSTEP_CHECK(own.size() == parts_to_receive[rank].size(),
                "the own part has {} bytes here and {} there", own.size(),
                parts_to_receive[rank].size());

  // Step k pairs every site with another one, so that no site is everybody's first target.
  std::vector<std::unique_ptr<Transfer>> transfers;
  for (int step = 1; step < size; ++step) {
    const int peer = (rank - step + size) % size;
    transfers.push_back(transport.receive(peer, tag, parts_to_receive[peer]));
  }
  for (int step = 1; step < size; ++step) {
    const int peer = (rank + step) % size;
    transfers.push_back(transport.send(peer, tag, parts_to_send[peer]));
  }
  auto* const own_target = parts_to_receive[rank].data();
  if (own_target != own.data() && !own.empty()) std::memcpy(own_target, own.data(), own.size());
  for (auto& transfer : transfers) transfer->wait();
}

void all_gather(Transport& transport, const Tag& tag, std::span<const std::byte> own,
                std::span<const std::span<std::byte>> parts) {
  const std::vector<std::span<const std::byte>> to_send(parts.size(), own);
  all_to_all(transport, tag, to_send, parts);
}

}  // namespace farstep
