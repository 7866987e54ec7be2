// A store of the sites in memory, for sites that are threads of one process.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "wan/transport/store.h"

namespace farstep {

// put() throws InternalError for a second value. Thread-safe.
class MemoryStore : public wan::Store {
 public:
  // get() waits at most `deadline_seconds`.
  explicit MemoryStore(double deadline_seconds) : deadline_seconds_(deadline_seconds) {}
  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;

 private:
  const double deadline_seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;  // guarded by mutex_
};

}  // namespace farstep
