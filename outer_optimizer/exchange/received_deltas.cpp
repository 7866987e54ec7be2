#include "outer_optimizer/exchange/received_deltas.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

namespace {

bool lies_in(const Range& part, const Range& whole) {
  return whole.begin <= part.begin && part.end <= whole.end;
}

}  // namespace

// A range that was received in part is two ranges now, of one buffer.
void ReceivedDeltas::begin(const Codec& codec, const Partition& partition,
                           std::span<const std::string> senders) {
  codec_ = &codec;
  for (const auto& range : partition.received) {
    const auto* buffer = find(range);
    const bool is_there =
        buffer != nullptr &&
        std::ranges::any_of(ranges_, [&](const auto& got) { return lies_in(range, got); }) &&
        std::ranges::all_of(
            senders, [&](const auto& sender) { return buffer->of_senders.contains(sender); });
    FARSTEP_CHECK(is_there, "values {} to {} of all deltas have not been received", range.begin,
                  range.end);
  }
  ranges_ = partition.received;
  const auto wanted = partition.ranges();
  std::erase_if(buffers_, [&](const Buffer& buffer) {
    return std::ranges::none_of(wanted,
                                [&](const auto& range) { return lies_in(range, buffer.range); });
  });
  for (const auto& range : wanted) {
    if (range.size() == 0) continue;
    auto* buffer = find(range);
    if (buffer == nullptr) buffer = &buffers_.emplace_back(Buffer{.range = range});
    std::erase_if(buffer->of_senders, [&](const auto& of_sender) {
      return std::ranges::count(senders, of_sender.first) == 0;
    });
    const auto size = static_cast<std::size_t>(codec.encoded_bytes(buffer->range.size()));
    for (const auto& sender : senders) {
      auto& memory = buffer->of_senders[sender];
      // Not zeroed: every page would be touched twice.
      if (!memory) memory = std::make_unique_for_overwrite<std::byte[]>(size);
    }
  }
}

std::span<std::byte> ReceivedDeltas::room(const std::string& sender, const Range& range) {
  auto* buffer = find(range);
  if (buffer == nullptr) return {};
  const auto memory = buffer->of_senders.find(sender);
  if (memory == buffer->of_senders.end()) return {};
  return {memory->second.get() + codec_->encoded_bytes(range.begin - buffer->range.begin),
          static_cast<std::size_t>(codec_->encoded_bytes(range.size()))};
}

void ReceivedDeltas::note(const Range& range) {
  if (!ranges_.empty() && ranges_.back().end == range.begin &&
      find(range) == find(ranges_.back())) {
    ranges_.back().end = range.end;
  } else {
    ranges_.push_back(range);
  }
}

void ReceivedDeltas::forget() {
  *this = {};
}

ReceivedDeltas::Buffer* ReceivedDeltas::find(const Range& range) {
  const auto found = std::ranges::find_if(
      buffers_, [&](const Buffer& buffer) { return lies_in(range, buffer.range); });
  return found == buffers_.end() ? nullptr : &*found;
}

}  // namespace farstep::outer_optimizer
