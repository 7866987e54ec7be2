#include "tests/support/memory_store.h"

#include <chrono>

#include "trainer/base/error.h"

namespace farstep {

void MemoryStore::put(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = values_.emplace(key, value);
  FARSTEP_CHECK(is_new || entry->second == value, "store key {} is written twice", key);
  changed_.notify_all();
}

std::string MemoryStore::get(const std::string& key) {
  std::unique_lock lock(mutex_);
  const auto is_there = [&] { return values_.contains(key); };
  if (!changed_.wait_for(lock, std::chrono::duration<double>(deadline_seconds_), is_there)) {
    throw PeerError(
        "", fmt::format("no site wrote {} to the store within {} s", key, deadline_seconds_));
  }
  return values_.at(key);
}

}  // namespace farstep
