#include "trainer/data/pieces/word_cache.h"

#include <utility>

#include "trainer/base/checksum.h"

namespace farstep {

namespace {

// Words of a natural language fit; 2.6 MB with their ids stay in a core's cache, nearly.
constexpr std::size_t kEntries = std::size_t{1} << 16;

uint64_t hash_of(std::string_view word) {
  return checksum(std::as_bytes(std::span(word)));
}

}  // namespace

WordCache::WordCache() : entries_(kEntries) {}

std::optional<std::span<const int32_t>> WordCache::find(std::string_view word) const {
  const uint64_t hash = hash_of(word);
  for (std::size_t slot = hash % kEntries;; slot = (slot + 1) % kEntries) {
    const auto& entry = entries_[slot];
    if (!entry.used) return std::nullopt;
    if (entry.hash == hash &&
        std::string_view(words_).substr(entry.word, entry.word_bytes) == word) {
      return std::span(ids_).subspan(entry.ids, entry.num_ids);
    }
  }
}

void WordCache::insert(std::string_view word, std::span<const int32_t> ids) {
  if (2 * used_ >= kEntries) *this = WordCache();
  const uint64_t hash = hash_of(word);
  std::size_t slot = hash % kEntries;
  while (entries_[slot].used) slot = (slot + 1) % kEntries;
  entries_[slot] = {hash,
                    static_cast<uint32_t>(words_.size()),
                    static_cast<uint32_t>(ids_.size()),
                    static_cast<uint16_t>(word.size()),
                    static_cast<uint16_t>(ids.size()),
                    true};
  ++used_;
  words_ += word;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

WordCaches::Lease::Lease(WordCaches& caches) : caches_(caches) {
  {
    const std::lock_guard lock(caches.mutex_);
    if (!caches.free_.empty()) {
      cache_ = std::move(caches.free_.back());
      caches.free_.pop_back();
    }
  }
  if (!cache_) cache_ = std::make_unique<WordCache>();
}

WordCaches::Lease::~Lease() {
  const std::lock_guard lock(caches_.mutex_);
  caches_.free_.push_back(std::move(cache_));
}

}  // namespace farstep
