// A Transport that emulates a WAN inside one machine, without root: each message takes as long as
// it would over the WAN. It passes a message to an inner transport at the time when its last byte
// would have arrived. Only the sending side does so; every site shapes the messages that it sends.
//
// Messages leave in pieces over the site's uplink, as in wan/link/uplink.h. Messages to one peer
// leave in order. Over a cut link no further piece leaves until the link is healed; pieces that
// have left arrive. Only payload bytes count: headers take no time. The queue_seconds of a shape
// has no effect, as messages wait in their sender's memory.
//
// wait() of a send returns when the message has arrived and the inner transport has taken it, so no
// message is copied. The transport ends if a cut link delays a message for `stall_seconds`, or if a
// transfer is given up. The inner transport does the receives, counts bytes and has the deadline of
// a receive. So no message may take longer than that deadline. Round trips, lost bytes and the
// sending time are emulated; the sending time ends when the last bit leaves.
//
// Threads: as in Transport. A separate thread delivers messages.
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
#include "wan/link/uplink.h"
#include "wan/transport/transport.h"

namespace farstep::wan {

class ShapedTransport : public Transport {
 public:
  struct Options {
    // Shared by all links.
    double uplink_bits_per_second = std::numeric_limits<double>::infinity();
    double stall_seconds = 60;
    uint64_t seed = 0;  // of the losses
  };

  // Shapes the messages over `inner`. Every link has `shape` until set_shape(). `clock` must
  // outlive this.
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

  // Changes the link to `peer` for pieces that have not begun to leave.
  void set_shape(int peer, const LinkShape& shape);

  // Delivers the messages that have arrived by now. Returns when the next one is due; infinity
  // means not before the next call of this transport. The transport's own thread waits in real
  // time, so a test that advances a fake clock must call this afterwards.
  double deliver();

 private:
  struct Message;
  class Sending;

  // Measures how long at least one of several messages, which may overlap, was being sent.
  class SendingTime {
   public:
    // begin(): a message is sent now. end(): a message leaves at `leave_seconds`, which may be in
    // the future.
    void begin(double now_seconds);
    void end(double leave_seconds);
    double seconds(double now_seconds) const;

   private:
    int64_t under_way_ = 0;
    double began_seconds_ = 0, until_seconds_ = 0;  // of the newest stretch
    double before_seconds_ = 0;                     // of all before it
  };

  // The messages on their way to one peer.
  struct Link {
    SendingTime sending;
    std::deque<std::shared_ptr<Message>> leaving;   // the first may have left in part
    std::deque<std::shared_ptr<Message>> arriving;  // that have left
  };

  void throw_if_dead(int peer);
  void give_up(Message& message);
  void run();

  // The functions below are called with mutex_ held.
  double proceed();
  double let_leave(double now_seconds);
  void let_piece_leave(const Uplink::Turn& turn);
  void note_ready(std::size_t peer);
  double hand_over(Link& link, double now_seconds);
  double check_for_stall(int peer, double now_seconds);
  void die(int peer, const std::string& reason);

  const std::unique_ptr<Transport> inner_;
  const Options options_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;    // a message was handed over, or the transport has died
  std::condition_variable due_;        // wakes the thread
  Uplink uplink_;                      // a link a rank; guarded by mutex_, as are all below
  std::vector<Link> links_;            // by rank
  std::vector<double> ready_seconds_;  // by rank, when its next piece was ready to leave
  SendingTime sending_;                // to all peers
  bool is_dead_ = false, is_stopping_ = false;
  std::thread thread_;  // starts when all else is ready
};

}  // namespace farstep::wan
