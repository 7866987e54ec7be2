// The ids of words that were encoded before. Most words of a text are frequent ones.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farstep {

// A table of bounded size that begins anew when it is full. One thread uses it.
class WordCache {
 public:
  WordCache();
  // Whether a word is kept: long ones hardly come again.
  static bool keeps(std::string_view word) { return word.size() <= kMostBytes; }
  // Appends the ids of a word: the ones that are known, else those that `encode` appends to an
  // empty list.
  template <typename Encode>
  void append(std::string_view word, std::vector<int32_t>& ids, const Encode& encode) {
    if (const auto known = keeps(word) ? find(word) : std::nullopt) {
      ids.insert(ids.end(), known->begin(), known->end());
      return;
    }
    std::vector<int32_t> fresh;
    encode(fresh);
    ids.insert(ids.end(), fresh.begin(), fresh.end());
    if (keeps(word)) insert(word, fresh);
  }
  // Returns the ids of a word; holds until the next insert().
  std::optional<std::span<const int32_t>> find(std::string_view word) const;
  // Keeps the ids of a word that find() did not find.
  void insert(std::string_view word, std::span<const int32_t> ids);

 private:
  static constexpr std::size_t kMostBytes = 64;
  struct Entry {
    uint64_t hash = 0;
    uint32_t word = 0, ids = 0;  // where they begin
    uint16_t word_bytes = 0, num_ids = 0;
    bool used = false;
  };

  std::vector<Entry> entries_;
  std::size_t used_ = 0;
  std::string words_;
  std::vector<int32_t> ids_;
};

// A cache for each of the threads that encode at the same time. Thread-safe.
class WordCaches {
 public:
  // A cache that one thread has until the end of the lease.
  class Lease {
   public:
    explicit Lease(WordCaches& caches);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    WordCache& operator*() { return *cache_; }

   private:
    WordCaches& caches_;
    std::unique_ptr<WordCache> cache_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;  // guarded by mutex_
};

}  // namespace farstep
