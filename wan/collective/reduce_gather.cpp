// Instead of a ring: every byte travels two hops whatever the number of sites, and each value is
// coded twice. A ring has 2 (N - 1) hops, and a lossy codec would code a sum again at each of them.
#include "wan/collective/reduce_gather.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace farstep::wan {

namespace {

enum Phase : uint32_t { kScatter, kGather };

// Least number of chunks under way: each of the three stages (begin, reduce, finish) has one, and
// one more travels.
constexpr int64_t kLeastSteps = 4;
// In an exchange with servers, half of the steps are begun ahead if the round trip is this long. On
// a shorter one fewer are, in proportion. With servers at 1 ms, 2 took 15.2 s, 4 16.5 s and half
// 16.7 s. Without servers at 80 ms, two sites that lost packets took 6.9 s with 16, and 4.9 s with
// half (docs/results/every_step_together.md). No measurement chose 50 ms.
constexpr double kLongRttSeconds = 0.05;
constexpr int64_t kLeastAhead = 2;

Tag tag_of(Tag tag, Phase phase, int64_t chunk) {
  tag.phase = phase;
  tag.chunk = static_cast<uint32_t>(chunk);
  return tag;
}

}  // namespace

// The buffers and transfers of one chunk of every partition. Members are destroyed in reverse
// order, so transfers end before their memory is freed.
class ReduceGather::Step {
 public:
  std::vector<std::byte> memory;
  std::vector<std::span<std::byte>> outgoing;  // by the site that reduces it
  std::vector<std::span<std::byte>> incoming;  // by the site that it comes from
  std::vector<std::span<std::byte>> results;   // by the site that reduced it
  std::vector<std::unique_ptr<Transfer>> sends;
  std::vector<std::unique_ptr<Transfer>> arrivals, result_arrivals;  // by site

  // Divides the memory into spans for the chunk. A partition without such a chunk gets empty spans.
  void lay_out(ReduceGatherValues& values, int64_t chunk, int rank, int size) {
    std::vector<std::size_t> bytes;
    for (int site = 0; site < size; ++site) {
      bytes.push_back(chunk < values.num_chunks(site) ? values.chunk_bytes(site, chunk) : 0);
    }
    incoming.assign(static_cast<std::size_t>(size), {});
    for (int site = 0; site < size; ++site) {
      if (site != rank && bytes[rank] > 0) incoming[site] = values.room(site, chunk);
    }
    // The own partition needs memory for the chunks of all sites that have no room; of the others,
    // a chunk out and its result in.
    std::size_t total_bytes =
        bytes[rank] * static_cast<std::size_t>(std::ranges::count_if(
                          incoming, [](const auto& room) { return room.empty(); }));
    for (const auto of_site : bytes) total_bytes += 2 * of_site;
    // Memory is only grown. Freeing and allocating it for every chunk would touch new pages each
    // time.
    if (memory.size() < total_bytes) memory.resize(total_bytes);
    auto rest = std::span(memory);
    const auto take = [&rest](std::size_t count) {
      const auto taken = rest.first(count);
      rest = rest.subspan(count);
      return taken;
    };
    outgoing.clear();
    results.clear();
    for (int site = 0; site < size; ++site) {
      outgoing.push_back(take(bytes[site]));
      results.push_back(take(bytes[site]));
      // This site's own contribution stays where it was encoded; nothing is copied.
      if (site == rank) {
        incoming[site] = outgoing[rank];
      } else if (incoming[site].empty()) {
        incoming[site] = take(bytes[rank]);
      }
    }
    sends.clear();
    arrivals.clear();
    result_arrivals.clear();
    arrivals.resize(static_cast<std::size_t>(size));
    result_arrivals.resize(static_cast<std::size_t>(size));
  }
};

ReduceGather::ReduceGather(Transport& transport, std::size_t window_bytes)
    : transport_(transport), window_bytes_(window_bytes) {}

ReduceGather::~ReduceGather() = default;

int64_t ReduceGather::make_steps(int64_t num_chunks, const ReduceGatherValues& values) {
  const int size = transport_.size();
  std::size_t largest = 1;  // avoids a division by zero
  for (int64_t chunk = 0; chunk < num_chunks; ++chunk) {
    std::size_t bytes = 0;
    for (int site = 0; site < size; ++site) {
      if (chunk >= values.num_chunks(site)) continue;
      bytes += (site == transport_.rank() ? 1 + static_cast<std::size_t>(size) : 2) *
               values.chunk_bytes(site, chunk);
    }
    largest = std::max(largest, bytes);
  }
  const auto fit = static_cast<int64_t>(window_bytes_ / largest);
  // More chunks than fit the window still need kLeastSteps, or the stages would wait for each
  // other.
  const auto num_steps = std::min(num_chunks, std::max(kLeastSteps, fit));
  steps_.resize(static_cast<std::size_t>(num_steps));
  for (auto& step : steps_) {
    if (!step) step = std::make_unique<Step>();
  }
  return num_steps;
}

int64_t ReduceGather::chunks_ahead(const ReduceGatherValues& values) const {
  // Half of the steps wait for the sites' chunks, the other half for results, as both take one hop.
  const auto half = (std::ssize(steps_) - 1) / 2;
  const auto reduces = [&](int site) {
    for (int64_t chunk = 0; chunk < values.num_chunks(site); ++chunk) {
      if (values.chunk_bytes(site, chunk) > 0) return true;
    }
    return false;
  };
  bool do_all_reduce = true;
  for (int site = 0; site < transport_.size(); ++site) do_all_reduce &= reduces(site);
  const double rtt_seconds = transport_.uplink().least_rtt_seconds;
  if (do_all_reduce || rtt_seconds == 0) return half;
  // Two servers send each other twice what a worker and a server do, but TCP gives every connection
  // an even part of a full line. So the workers' chunks come first, and a reduction waits for the
  // servers'. The workers cannot get far ahead if few chunks are begun.
  const auto needed = std::ceil(static_cast<double>(half) * rtt_seconds / kLongRttSeconds);
  return std::min(half, std::max(kLeastAhead, static_cast<int64_t>(needed)));
}

// Chunk c is begun, reduced `ahead` chunks later, and finished `num_steps` chunks later. Its step
// is then free for chunk c + num_steps. While the next chunk is not ready, those under way go on:
// the other sites wait for their results.
void ReduceGather::run(const Tag& tag, ReduceGatherValues& values, Hops hops) {
  int64_t num_chunks = 0;
  for (int site = 0; site < transport_.size(); ++site) {
    num_chunks = std::max(num_chunks, values.num_chunks(site));
  }
  const int64_t num_steps = make_steps(num_chunks, values);
  const int64_t ahead = chunks_ahead(values);
  int64_t begun = 0, reduced = 0, finished = 0;
  try {
    while (finished < num_chunks) {
      const bool is_full = begun - finished == num_steps;
      const bool is_reduction_due = begun - reduced > ahead;
      if (begun < num_chunks && !is_full && !is_reduction_due && values.is_ready(begun)) {
        begin(begun++, tag, values, hops);
      } else if (is_reduction_due || (reduced < begun && !is_full)) {
        reduce(reduced++, tag, values, hops);
      } else if (finished < reduced) {
        finish(finished++, values, hops);
      } else {
        values.wait_until_ready(begun);
      }
    }
  } catch (...) {
    // Their destructors end the transfers, which use the memory of the steps.
    steps_.clear();  // transfers must not outlive the transport
    throw;
  }
}

void ReduceGather::begin(int64_t chunk, const Tag& tag, ReduceGatherValues& values, Hops hops) {
  const int size = transport_.size();
  const int rank = transport_.rank();
  auto& now = step(chunk);
  now.lay_out(values, chunk, rank, size);
  // Receives are posted before anything can arrive, so that no bytes wait in a socket. Each site
  // starts with another peer, so that no peer gets the first message of all sites. Nothing is
  // received for an empty chunk: another pipeline may use its tag.
  for (int turn = 1; turn < size; ++turn) {
    const int peer = (rank - turn + size) % size;
    if (hops != Hops::kBack && !now.incoming[peer].empty() && values.is_sent(peer, rank, chunk)) {
      now.arrivals[peer] =
          transport_.receive(peer, tag_of(tag, kScatter, chunk), now.incoming[peer]);
    }
    if (hops != Hops::kThere && !now.results[peer].empty()) {
      now.result_arrivals[peer] =
          transport_.receive(peer, tag_of(tag, kGather, chunk), now.results[peer]);
    }
  }
  if (hops == Hops::kBack || !values.has_values()) return;
  for (int turn = 1; turn <= size; ++turn) {
    const int site = (rank + turn) % size;
    if (now.outgoing[site].empty()) continue;
    values.encode(site, chunk, now.outgoing[site]);
    if (site == rank || !values.is_sent(rank, site, chunk)) continue;
    now.sends.push_back(transport_.send(site, tag_of(tag, kScatter, chunk), now.outgoing[site]));
  }
}

// Waits for the sites' chunks of this site's partition, and sends their result to all.
void ReduceGather::reduce(int64_t chunk, const Tag& tag, ReduceGatherValues& values, Hops hops) {
  const int size = transport_.size();
  const int rank = transport_.rank();
  auto& now = step(chunk);
  // Waits for all before it adds, because the order of addition must not depend on arrival.
  for (const auto& arrival : now.arrivals) {
    if (arrival) arrival->wait();
  }
  if (now.results[rank].empty()) return;
  if (hops == Hops::kBack) {
    values.encode(rank, chunk, now.results[rank]);
  } else {
    const std::vector<std::span<const std::byte>> from_sites(now.incoming.begin(),
                                                             now.incoming.end());
    values.reduce(chunk, from_sites, now.results[rank]);
  }
  if (hops == Hops::kThere) return;
  for (int turn = 1; turn < size; ++turn) {
    const int peer = (rank + turn) % size;
    now.sends.push_back(transport_.send(peer, tag_of(tag, kGather, chunk), now.results[rank]));
  }
}

// Results first, sends last: a send only has to be complete before its memory is used again.
void ReduceGather::finish(int64_t chunk, ReduceGatherValues& values, Hops hops) {
  auto& now = step(chunk);
  for (int site = 0; site < transport_.size(); ++site) {
    if (now.results[site].empty()) continue;
    if (hops == Hops::kThere && site != transport_.rank()) continue;
    if (now.result_arrivals[site]) now.result_arrivals[site]->wait();
    values.decode(site, chunk, now.results[site]);
  }
  for (const auto& send : now.sends) send->wait();
}

ReduceGather::Step& ReduceGather::step(int64_t chunk) {
  return *steps_[static_cast<std::size_t>(chunk) % steps_.size()];
}

}  // namespace farstep::wan
