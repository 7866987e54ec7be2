// A small key-value store that sites share before they have connections of their own. It holds
// listening addresses, nonces and verdicts. Runs keep it on the control plane.
//
// All methods are thread-safe.
#pragma once

#include <string>
#include <vector>

namespace farstep::wan {

class Store {
 public:
  virtual ~Store() = default;
  // Sets `key` to `value` (any bytes). A key is written once; a second write must have the same
  // value. Throws PeerError if the store cannot be reached.
  virtual void put(const std::string& key, const std::string& value) = 0;
  // Returns the value of `key`; waits until it exists. Throws PeerError after the store's deadline.
  virtual std::string get(const std::string& key) = 0;
  // Does put(), and then get() for each of `wanted`; returns their values in this order. A store
  // that is far away needs one round trip for all of it.
  virtual std::vector<std::string> put_and_get(const std::string& key, const std::string& value,
                                               const std::vector<std::string>& wanted);
};

// Publishes `own` as this site's value of `key`. Returns the values of all `size` sites, by rank,
// which do the same at the same time.
std::vector<std::string> share(Store& store, const std::string& key, const std::string& own,
                               int self, int size);

// Returns when all `size` sites have called it with `key`, or when one cannot any more. Sites that
// have learned the same failure call it before they end: one of them may take the store along.
void wait_until_all_know(Store& store, const std::string& key, int self, int size);

}  // namespace farstep::wan
