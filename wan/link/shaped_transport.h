// A Transport whose messages take the time that they would take over a WAN: for trying one inside a
// machine, without root. It hands each message to another transport when its last byte would have
// arrived; all is done at the sending side, so every site shapes what it sends.
//
// - Rate: payload bits. Messages leave in pieces of 64 KiB, one piece at a time: the uplink is
//   shared by all peers, who take turns piece by piece; messages to one peer leave in order. A link
//   that is slower than the uplink holds up nobody else.
// - Delay: from the end of a message's last piece to its arrival.
// - Loss: packets of 1460 bytes are lost by seed, and nothing is dropped: a piece that lost some
//   arrives one round trip (twice the delay) later, and its link stands still for that long.
// - Cut: no piece leaves until the link is healed; what has left arrives.
// - queue_seconds of a shape means nothing here: messages wait in their sender's memory.
//
// wait() of a send returns when the message has arrived and the inner transport took it over, so no
// message is copied. A cut link that holds up a message for `stall_seconds` ends the transport, as
// does a transfer that is given up. Receives, counted bytes and the deadline of a receive are the
// inner transport's, so one message must not take longer than that deadline on its way. Round
// trips, lost bytes and the time of sending, which ends when the last bit leaves, are as played.
//
// Threads: as Transport says. A thread of its own delivers messages.
#pragma once

#include <condition_variable>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/clock.h"
#include "wan/link/link_shape.h"
#include "wan/transport/transport.h"

namespace farstep {

class ShapedTransport : public Transport {
 public:
  struct Options {
    // Shared by all links.
    double uplink_bits_per_second = std::numeric_limits<double>::infinity();
    double stall_seconds = 60;
    uint64_t seed = 0;  // of the losses
  };

  // Shapes what goes over `inner`; every link has `shape` until set_shape(). `clock` must outlive
  // this.
  ShapedTransport(std::unique_ptr<Transport> inner, const LinkShape& shape, const Options& options,
                  Clock& clock);
  ~ShapedTransport() override;

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const std::string& site(int rank) const override { return inner_->site(rank); }
  std::unique_ptr<Transfer> send(int peer, const Tag& tag,
                                 std::span<const std::byte> bytes) override;
  std::unique_ptr<Transfer> receive(int peer, const Tag& tag, std::span<std::byte> bytes) override;
  void abort(const std::string& site, const std::string& reason) override;
  LinkState link(int peer) const override;
  LinkState uplink() const override;

  // Changes the link to `peer` for the pieces that have not begun to leave.
  void set_shape(int peer, const LinkShape& shape);

  // Delivers what has arrived by now, and returns when there is something to do next (infinity: not
  // before the next call of this transport). The transport's own thread waits in real time, so
  // whoever moves a fake clock calls this afterwards.
  double deliver();

 private:
  struct Message;
  class Sending;

  // How long any of several messages, which may overlap, was on its way out.
  class SendingTime {
   public:
    // A message is sent now; one leaves at a time that may be yet to come.
    void begin(double now_seconds);
    void end(double leave_seconds);
    double seconds(double now_seconds) const;

   private:
    int64_t under_way_ = 0;
    double began_seconds_ = 0, until_seconds_ = 0;  // of the newest stretch
    double before_seconds_ = 0;                     // of all before it
  };

  // The way to one peer.
  struct Link {
    LinkShape shape;
    double free_seconds = 0;     // when its next piece may leave
    double arrival_seconds = 0;  // of the last piece that left
    uint64_t turn = 0;           // when it was served last
    uint64_t packets = 0;        // that have left
    uint64_t lost_packets = 0;   // of those
    SendingTime sending;
    std::deque<std::shared_ptr<Message>> leaving;   // the first one perhaps in part
    std::deque<std::shared_ptr<Message>> arriving;  // that have left
  };

  void throw_if_dead(int peer);
  void give_up(Message& message);
  void run();

  // All below are called with mutex_ held.
  double proceed();
  double let_leave(double now_seconds);
  void let_piece_leave(int peer, double start_seconds);
  bool lose_packets(int peer, std::size_t bytes);
  double hand_over(Link& link, double now_seconds);
  double check_for_stall(int peer, double now_seconds);
  void die(int peer, const std::string& reason);

  const std::unique_ptr<Transport> inner_;
  const Options options_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a message was handed over, or the transport has died
  std::condition_variable due_;      // the thread has to look again
  std::vector<Link> links_;          // by rank; guarded by mutex_, as are all below
  double uplink_free_seconds_ = 0;
  SendingTime sending_;  // to any peer
  uint64_t turns_ = 0;
  bool is_dead_ = false, is_stopping_ = false;
  std::thread thread_;  // starts when all else is ready
};

}  // namespace farstep
