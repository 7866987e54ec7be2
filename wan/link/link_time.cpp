#include "wan/link/link_time.h"

#include <algorithm>
#include <numeric>

#include "wan/link/link_shape.h"

namespace farstep::wan {

namespace {

// Returns the indices of the messages in ascending order of `key`.
template <typename Key>
std::vector<std::size_t> sorted_by(std::span<const OutgoingMessage> messages, Key key) {
  std::vector<std::size_t> order(messages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return messages[i].*key; });
  return order;
}

}  // namespace

double message_seconds(double bytes, double bits_per_second, double delay_seconds) {
  return kBitsPerByte * bytes / bits_per_second + delay_seconds;
}

// Max-min fairness. Links whose rate is below the equal part run at their rate. All others have the
// same speed, and so have sent the same number of bits, `level`, at any event. That speed only
// grows, as messages end. So a link that has reached its own rate stays there. Every event is the
// end of a message or a link reaching its rate: two sorted lists and a heap suffice.
std::vector<double> leave_seconds(double uplink_bits_per_second,
                                  std::span<const OutgoingMessage> messages) {
  std::vector<double> leave(messages.size());
  const auto own_seconds = [&](std::size_t i) {
    return kBitsPerByte * messages[i].bytes / messages[i].bits_per_second;
  };
  // Without a limit in common the links do not affect each other.
  if (uplink_bits_per_second == kUnlimitedRate) {
    for (std::size_t i = 0; i < messages.size(); ++i) leave[i] = own_seconds(i);
    return leave;
  }
  const auto by_bytes = sorted_by(messages, &OutgoingMessage::bytes);
  const auto by_rate = sorted_by(messages, &OutgoingMessage::bits_per_second);
  std::vector<bool> is_sharing(messages.size(), true);
  std::vector<std::pair<double, std::size_t>> at_own_rate;  // a heap; the first one ends first
  std::size_t smallest = 0, slowest = 0;                    // into the sorted lists
  auto num_sharing = messages.size();
  double now = 0, level = 0, shared_rate = uplink_bits_per_second;

  while (num_sharing > 0 || !at_own_rate.empty()) {
    // The links whose own rate is now below their equal part leave the shared group, slowest first.
    while (slowest < by_rate.size()) {
      const auto link = by_rate[slowest];
      const double rate = messages[link].bits_per_second;
      if (is_sharing[link]) {
        if (rate > shared_rate / static_cast<double>(num_sharing)) break;
        is_sharing[link] = false;
        --num_sharing;
        shared_rate -= rate;
        const double left_bits = std::max(0.0, kBitsPerByte * messages[link].bytes - level);
        at_own_rate.emplace_back(now + left_bits / rate, link);
        std::ranges::push_heap(at_own_rate, std::greater());
      }
      ++slowest;
    }
    while (smallest < by_bytes.size() && !is_sharing[by_bytes[smallest]]) ++smallest;
    // The next event: the smallest message of the group ends, or one at its own rate does.
    const double speed = num_sharing > 0 ? shared_rate / static_cast<double>(num_sharing) : 0;
    double end = kUnlimitedRate;
    if (num_sharing > 0) {
      const double bits = kBitsPerByte * messages[by_bytes[smallest]].bytes;
      end = now + std::max(0.0, bits - level) / speed;
    }
    if (!at_own_rate.empty() && at_own_rate.front().first <= end) {
      std::ranges::pop_heap(at_own_rate, std::greater());
      const auto [when, link] = at_own_rate.back();
      at_own_rate.pop_back();
      level += speed * (when - now);
      now = leave[link] = when;
      // Its rate is free for the group.
      shared_rate += messages[link].bits_per_second;
    } else {
      const auto link = by_bytes[smallest];
      // Rounding must not make the level fall.
      level = std::max(level, kBitsPerByte * messages[link].bytes);
      now = leave[link] = end;
      is_sharing[link] = false;
      --num_sharing;
    }
  }
  return leave;
}

double reduce_gather_seconds(double bytes, int64_t num_sites, double uplink_bits_per_second,
                             double delay_seconds) {
  const auto sites = static_cast<double>(num_sites);
  const double phase_bytes = (sites - 1) / sites * bytes;  // what a site sends in either phase
  return 2 * message_seconds(phase_bytes, uplink_bits_per_second, delay_seconds);
}

}  // namespace farstep::wan
