// Where sites leave small values for each other before they have connections of their own:
// listening addresses, nonces, verdicts. Real runs keep it on the control plane; tests keep it in
// memory.
//
// All methods may be called from any thread.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

namespace farstep {

class Store {
 public:
  virtual ~Store() = default;
  // Sets `key` to `value` (any bytes). A key is written once; writing it again with the same value
  // is allowed. Throws PeerError if the store cannot be reached.
  virtual void put(const std::string& key, const std::string& value) = 0;
  // The value of `key`; waits until it exists. Throws PeerError after the store's deadline.
  virtual std::string get(const std::string& key) = 0;
};

// A store for sites that are threads of one process.
class MemoryStore : public Store {
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
