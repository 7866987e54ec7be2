#include "wan/collective/link_ring.h"

#include <algorithm>
#include <memory>

namespace farstep::wan {

namespace {

// As those of the direct exchange: small beside the bytes that a long link has under way, large
// beside a message's header.
constexpr int64_t kChunkValues = (128 << 10) / sizeof(float);
// Receives that wait for their bytes. Together they have room for what a link of 400 Mbit/s and 160
// ms has under way.
constexpr int64_t kWindowChunks = 64;

}  // namespace

// One pass over values of at most N segments. Message m is chunk m % C of step m / C, where a
// segment has C chunks. What a site receives in a step is what it sends in the next one.
class LinkRing::Round {
 public:
  Round(Transport& transport, const Tag& tag, std::span<float> values, std::vector<float>& arrived)
      : transport_(transport),
        tag_(tag),
        rank_(transport.rank()),
        size_(transport.size()),
        values_(values),
        arrived_(arrived) {
    const auto longest = (std::ssize(values) + size_ - 1) / size_;
    num_chunks_ = (longest + kChunkValues - 1) / kChunkValues;
    adding_ = (size_ - 1) * num_chunks_;
    num_messages_ = 2 * adding_;
    // With more, a chunk could come back before this site has sent it.
    window_ = std::min(kWindowChunks, size_ * num_chunks_);
    const auto room = static_cast<std::size_t>(std::min(window_, adding_) * kChunkValues);
    if (arrived_.size() < room) arrived_.resize(room);
    sends_.resize(static_cast<std::size_t>(num_messages_));
    arrivals_.resize(static_cast<std::size_t>(num_messages_));
  }

  void run() {
    for (int64_t message = 0; message < num_chunks_; ++message) send(message);
    int64_t posted = 0;
    for (int64_t message = 0; message < num_messages_; ++message) {
      for (; posted < std::min(num_messages_, message + window_); ++posted) receive(posted);
      finish(arrivals_, message);
      if (message < adding_) add(message);
      if (message + num_chunks_ < num_messages_) send(message + num_chunks_);
    }
    for (int64_t message = 0; message < num_messages_; ++message) finish(sends_, message);
  }

 private:
  using Transfers = std::vector<std::unique_ptr<Transfer>>;

  // Waits for a transfer and drops it; the second time it does nothing.
  static void finish(Transfers& transfers, int64_t message) {
    auto& transfer = transfers[static_cast<std::size_t>(message)];
    if (!transfer) return;
    transfer->wait();
    transfer.reset();
  }

  void send(int64_t message) {
    const auto values = chunk(rank_ - message / num_chunks_, message % num_chunks_);
    sends_[static_cast<std::size_t>(message)] =
        transport_.send((rank_ + 1) % size_, tag_of(message), std::as_bytes(values));
  }

  // A finished sum replaces the values that this site sent of the chunk, so these must have left.
  void receive(int64_t message) {
    auto values = received(message);
    if (message < adding_) {
      values = arrived(message).first(values.size());
    } else {
      finish(sends_, message - adding_);
    }
    arrivals_[static_cast<std::size_t>(message)] = transport_.receive(
        (rank_ + size_ - 1) % size_, tag_of(message), std::as_writable_bytes(values));
  }

  void add(int64_t message) {
    const auto sum = received(message);
    const auto other = arrived(message);
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += other[k];
  }

  Tag tag_of(int64_t message) const {
    auto tag = tag_;
    tag.chunk = static_cast<uint32_t>(message);
    return tag;
  }

  // Where the values of a received message belong.
  std::span<float> received(int64_t message) const {
    return chunk(rank_ - 1 - message / num_chunks_, message % num_chunks_);
  }

  // The room for a message that is added to values which are there.
  std::span<float> arrived(int64_t message) const {
    return std::span(arrived_).subspan(static_cast<std::size_t>(message % window_ * kChunkValues),
                                       kChunkValues);
  }

  // `segment` counts round the ring, and may be negative. The last chunks of a segment may be
  // empty.
  std::span<float> chunk(int64_t segment, int64_t number) const {
    const auto place = (segment + 2 * size_) % size_;
    const auto begin = std::ssize(values_) * place / size_;
    const auto end = std::ssize(values_) * (place + 1) / size_;
    const auto first = std::min(end, begin + number * kChunkValues);
    const auto last = std::min(end, first + kChunkValues);
    return values_.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
  }

  Transport& transport_;
  const Tag tag_;
  const int rank_;
  const int size_;
  const std::span<float> values_;
  std::vector<float>& arrived_;
  int64_t num_chunks_ = 0;    // of the longest segment
  int64_t adding_ = 0;        // messages before the first finished sum
  int64_t num_messages_ = 0;  // that a site sends, and receives
  int64_t window_ = 0;
  Transfers sends_, arrivals_;  // by message; they end before the memory above
};

LinkRing::LinkRing(Transport& transport, uint64_t generation, int64_t segment_bytes)
    : transport_(transport),
      generation_(generation),
      segment_values_(segment_bytes / static_cast<int64_t>(sizeof(float))) {}

void LinkRing::all_reduce(std::span<float> values) {
  const auto most = static_cast<std::size_t>(transport_.size() * segment_values_);
  if (transport_.size() == 1) return;
  for (; !values.empty(); values = values.subspan(std::min(most, values.size()))) {
    Round(transport_, {.generation = generation_, .round = num_rounds_++},
          values.first(std::min(most, values.size())), arrived_)
        .run();
  }
}

}  // namespace farstep::wan
