#include "wan/collective/reduce_gather.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/support/catch.h"
#include "tests/wan/transport/meshes.h"
#include "tests/wan/transport/run_ranks.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

using Bytes = std::vector<std::byte>;

// Sums the sites' bytes, modulo 256. Partition p of every site's bytes has sizes[p] bytes, cut in
// chunks of `chunk_size`.
class Sum : public ReduceGatherValues {
 public:
  Sum(int rank, std::vector<std::size_t> sizes, std::size_t chunk_size)
      : rank_(rank), sizes_(std::move(sizes)), chunk_size_(chunk_size) {
    for (std::size_t site = 0; site < sizes_.size(); ++site) {
      own_.push_back(pattern(rank, static_cast<int>(site), sizes_[site]));
      result_.push_back(Bytes(sizes_[site]));
    }
  }

  int64_t num_chunks(int site) const override {
    return static_cast<int64_t>((sizes_[site] + chunk_size_ - 1) / chunk_size_);
  }
  std::size_t chunk_bytes(int site, int64_t chunk) const override {
    return std::min(chunk_size_, sizes_[site] - begin(chunk));
  }
  void encode(int site, int64_t chunk, std::span<std::byte> bytes) override {
    std::copy_n(own_[site].begin() + static_cast<std::ptrdiff_t>(begin(chunk)), bytes.size(),
                bytes.begin());
  }
  void reduce(int64_t chunk, std::span<const std::span<const std::byte>> from_sites,
              std::span<std::byte> result) override {
    check_sizes(from_sites, chunk_bytes(rank_, chunk));
    for (std::size_t k = 0; k < result.size(); ++k) {
      unsigned sum = 0;
      for (const auto& bytes : from_sites) sum += std::to_integer<unsigned>(bytes[k]);
      result[k] = static_cast<std::byte>(sum);
    }
  }
  void decode(int site, int64_t chunk, std::span<const std::byte> result) override {
    std::ranges::copy(result, result_[site].begin() + static_cast<std::ptrdiff_t>(begin(chunk)));
  }

  const std::vector<Bytes>& result() const { return result_; }

 private:
  std::size_t begin(int64_t chunk) const { return static_cast<std::size_t>(chunk) * chunk_size_; }
  static void check_sizes(std::span<const std::span<const std::byte>> spans, std::size_t size) {
    for (const auto& bytes : spans) {
      FARSTEP_CHECK(bytes.size() == size, "{} bytes, not {}", bytes.size(), size);
    }
  }

  const int rank_;
  const std::vector<std::size_t> sizes_;
  const std::size_t chunk_size_;
  std::vector<Bytes> own_, result_;
};

// What all sites should have got.
std::vector<Bytes> expected(int num_sites, const std::vector<std::size_t>& sizes) {
  std::vector<Bytes> sums;
  for (int site = 0; site < num_sites; ++site) {
    Bytes sum(sizes[site]);
    for (int from = 0; from < num_sites; ++from) {
      const auto own = pattern(from, site, sizes[site]);
      for (std::size_t k = 0; k < sum.size(); ++k) {
        sum[k] = static_cast<std::byte>(std::to_integer<unsigned>(sum[k]) +
                                        std::to_integer<unsigned>(own[k]));
      }
    }
    sums.push_back(std::move(sum));
  }
  return sums;
}

// The same for bytes that are ready one chunk after the other, as a gate lets them.
class Gate {
 public:
  void open(int64_t chunks) {
    const std::lock_guard lock(mutex_);
    ready_ = std::max(ready_, chunks);
    changed_.notify_all();
  }
  bool is_open(int64_t chunk) const {
    const std::lock_guard lock(mutex_);
    return chunk < ready_;
  }
  void wait(int64_t chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return chunk < ready_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int64_t ready_ = 0;
};

class GatedSum : public Sum {
 public:
  GatedSum(Gate& gate, int rank, std::vector<std::size_t> sizes, std::size_t chunk_size)
      : Sum(rank, std::move(sizes), chunk_size), gate_(gate) {}
  bool is_ready(int64_t chunk) const override { return gate_.is_open(chunk); }
  void wait_until_ready(int64_t chunk) override { gate_.wait(chunk); }
  void encode(int site, int64_t chunk, std::span<std::byte> bytes) override {
    FARSTEP_CHECK(gate_.is_open(chunk), "chunk {} is not ready", chunk);
    Sum::encode(site, chunk, bytes);
  }
  void decode(int site, int64_t chunk, std::span<const std::byte> result) override {
    Sum::decode(site, chunk, result);
    if (on_decode) on_decode(chunk);
  }
  std::function<void(int64_t)> on_decode;

 private:
  Gate& gate_;
};

// The same, and the most chunks that the site had encoded and not yet reduced.
class Backlog : public Sum {
 public:
  using Sum::Sum;
  void encode(int site, int64_t chunk, std::span<std::byte> bytes) override {
    Sum::encode(site, chunk, bytes);
    most_ = std::max(most_, chunk + 1 - reduced_);
  }
  void reduce(int64_t chunk, std::span<const std::span<const std::byte>> from_sites,
              std::span<std::byte> result) override {
    Sum::reduce(chunk, from_sites, result);
    reduced_ = chunk + 1;
  }
  int64_t most() const { return most_; }

 private:
  int64_t reduced_ = 0, most_ = 0;
};

std::vector<bool> run_all(const Transports& mesh, const std::vector<std::size_t>& sizes,
                          std::size_t chunk_size, std::size_t window_bytes, int runs = 1) {
  const int num_sites = static_cast<int>(mesh.size());
  const auto sums = expected(num_sites, sizes);
  return run_ranks(num_sites, [&](int rank) {
    ReduceGather pipeline(*mesh[rank], window_bytes);
    bool right = true;
    for (int run = 0; run < runs; ++run) {
      Sum work(rank, sizes, chunk_size);
      pipeline.run({.round = static_cast<uint64_t>(run)}, work);
      right &= work.result() == sums;
    }
    return right;
  });
}

}  // namespace

TEST_CASE("every site gets every result whatever the sizes and the window") {
  for (int n = 1; n <= 5; ++n) {
    for (const std::size_t size : {0, 1, 7, 64, 1001}) {
      for (const std::size_t window : {1, 3000, 1 << 20}) {
        const std::vector<std::size_t> sizes(static_cast<std::size_t>(n), size);
        REQUIRE(run_all(memory_mesh(n), sizes, 16, window) == std::vector<bool>(n, true));
      }
    }
  }
}

TEST_CASE("partitions may be of unequal size and empty") {
  for (const auto& sizes : std::vector<std::vector<std::size_t>>{
           {0, 0, 1000}, {1000, 0, 0}, {1, 100, 1000}, {0, 333, 333}, {0, 0, 0}}) {
    REQUIRE(run_all(memory_mesh(3), sizes, 64, 4096, 3) == std::vector<bool>(3, true));
  }
}

TEST_CASE("a pipeline runs over real connections and again and again") {
  REQUIRE(run_all(gloo_mesh(3, 20, "127.0.0.1", 2), {300000, 250001, 1}, 65536, 1 << 20, 5) ==
          std::vector<bool>(3, true));
}

TEST_CASE("a site sends each byte to the partition's site and the result of its own to all") {
  const auto mesh = memory_mesh(3);
  REQUIRE(run_all(mesh, {100, 200, 300}, 64, 4096) == std::vector<bool>(3, true));
  CHECK(mesh[0]->link(1).sent_bytes == 200 + 100);
  CHECK(mesh[0]->link(2).sent_bytes == 300 + 100);
  CHECK(mesh[2]->link(0).sent_bytes == 100 + 300);
}

TEST_CASE("chunks that are not ready hold up none that is under way") {
  // A site makes its next chunk ready when it has the result of the one before. Were a chunk's
  // result to wait for the chunk after it, this would never end.
  for (const std::size_t window : {1, 3000, 1 << 20}) {
    const std::vector<std::size_t> sizes(3, 1000);
    const auto mesh = memory_mesh(3);
    const auto right = run_ranks(3, [&](int rank) {
      Gate gate;
      gate.open(1);
      ReduceGather pipeline(*mesh[rank], window);
      GatedSum work(gate, rank, sizes, 16);
      work.on_decode = [&](int64_t chunk) { gate.open(chunk + 2); };
      pipeline.run({}, work);
      return work.result() == expected(3, sizes);
    });
    REQUIRE(right == std::vector<bool>(3, true));
  }
}

TEST_CASE("a site with servers near it begins few chunks before it reduces the first") {
  constexpr std::size_t kChunk = 1000;
  const auto most_under_way = [&](const std::vector<std::size_t>& sizes) {
    const auto mesh = gloo_mesh(3);
    return run_ranks(3, [&](int rank) {
      Backlog work(rank, sizes, kChunk);
      ReduceGather(*mesh[rank], 1 << 20).run({}, work);
      FARSTEP_CHECK(work.result() == expected(3, sizes), "node{} has a wrong result", rank + 1);
      return work.most();
    });
  };
  const auto of_server = most_under_way({100 * kChunk, 0, 0})[0];
  CHECK(of_server == 3);
  for (const auto of_site : most_under_way(std::vector<std::size_t>(3, 100 * kChunk))) {
    CHECK(of_site == 50);  // half of the chunks, which all fit the window
  }
}

TEST_CASE("each of the two hops can be done alone") {
  for (const int n : {1, 2, 4}) {
    const std::vector<std::size_t> sizes(static_cast<std::size_t>(n), 333);
    const auto mesh = memory_mesh(n);
    const auto results = run_ranks(n, [&](int rank) {
      ReduceGather pipeline(*mesh[rank], 1000);
      Sum there(rank, sizes, 16), back(rank, sizes, 16);
      pipeline.run({.round = 1}, there, Hops::kThere);
      pipeline.run({.round = 2}, back, Hops::kBack);
      return std::pair{there.result(), back.result()};
    });
    const auto sums = expected(n, sizes);
    for (int rank = 0; rank < n; ++rank) {
      const auto& [there, back] = results[static_cast<std::size_t>(rank)];
      for (int site = 0; site < n; ++site) {
        // Only the owner has the sum; all have the owner's bytes.
        CHECK(there[site] == (site == rank ? sums[site] : Bytes(333)));
        CHECK(back[site] == pattern(site, site, 333));
      }
      if (n > 1) {
        const auto peer = (rank + 1) % n;
        CHECK(mesh[static_cast<std::size_t>(rank)]->link(peer).sent_bytes == 2 * 333);
      }
    }
  }
}

TEST_CASE("a rank that is lost in a pipeline is named by those who wait") {
  auto mesh = memory_mesh(3);
  const auto errors = run_ranks(3, [&](int rank) -> std::string {
    if (rank == 2) {
      mesh[2].reset();
      return "";
    }
    return peer_error([&] {
      ReduceGather pipeline(*mesh[rank], 4096);
      Sum work(rank, {1000, 1000, 1000}, 64);
      pipeline.run({}, work);
    });
  });
  CHECK_THAT(errors[0], Catch::StartsWith("node3: "));
  CHECK_THAT(errors[1], Catch::StartsWith("node3: "));
}
