#include "trainer/strategy/agreement.h"

#include "trainer/base/error.h"

namespace farstep {

std::optional<wan::Go> agree(wan::Rendezvous& rendezvous, const wan::SyncId& sync,
                             const wan::Contribution& contribution, const std::string& hash_before,
                             const std::string& hash_after,
                             const std::function<void(const wan::Go&)>& check,
                             const std::stop_token& stop) {
  auto go = rendezvous.arrive(sync, contribution, hash_before, stop);
  while (go) {
    check(*go);
    try {
      if (!rendezvous.vote(sync, hash_after, stop)) return std::nullopt;
      break;
    } catch (const PeerError& error) {
      if (!rendezvous.is_renewed(go->generation, error.site(), stop)) throw;
    }
    go = rendezvous.arrive(sync, contribution, hash_before, stop);
  }
  return go;
}

}  // namespace farstep
