// A data path in memory on which a site dies while it exchanges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "wan/transport/transport.h"

namespace farstep {

// The transport of one of `all`, which must outlive it. When it has sent `last_send` messages and
// is to send another one, all transports fail and name its site. Below 0 it never dies.
class DyingTransport : public wan::Transport {
 public:
  DyingTransport(std::vector<std::unique_ptr<wan::Transport>>& all, int rank, int64_t last_send)
      : all_(all), own_(*all[static_cast<std::size_t>(rank)]), left_(last_send) {}
  int rank() const override { return own_.rank(); }
  int size() const override { return own_.size(); }
  const std::string& site(int rank) const override { return own_.site(rank); }
  std::unique_ptr<wan::Transfer> send(int peer, const wan::Tag& tag,
                                      std::span<const std::byte> bytes) override {
    if (left_-- == 0) {
      for (auto& transport : all_) transport->abort(site(rank()), "it was killed");
      throw PeerError(site(rank()), "it was killed");
    }
    return own_.send(peer, tag, bytes);
  }
  std::unique_ptr<wan::Transfer> receive(int peer, const wan::Tag& tag,
                                         std::span<std::byte> bytes) override {
    return own_.receive(peer, tag, bytes);
  }
  void abort(const std::string& site, const std::string& reason) override {
    own_.abort(site, reason);
  }
  wan::LinkState link(int peer) const override { return own_.link(peer); }

 private:
  std::vector<std::unique_ptr<wan::Transport>>& all_;
  wan::Transport& own_;
  int64_t left_;
};

}  // namespace farstep
