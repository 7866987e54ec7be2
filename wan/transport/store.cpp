#include "wan/transport/store.h"

#include <fmt/format.h>

#include "trainer/base/error.h"

namespace farstep::wan {

std::vector<std::string> Store::put_and_get(const std::string& key, const std::string& value,
                                            const std::vector<std::string>& wanted) {
  put(key, value);
  std::vector<std::string> values;
  for (const auto& other : wanted) values.push_back(get(other));
  return values;
}

std::vector<std::string> share(Store& store, const std::string& key, const std::string& own,
                               int self, int size) {
  std::vector<std::string> keys;
  for (int site = 0; site < size; ++site) keys.push_back(fmt::format("{}/{}", key, site));
  return store.put_and_get(keys.at(static_cast<std::size_t>(self)), own, keys);
}

void wait_until_all_know(Store& store, const std::string& key, int self, int size) {
  try {
    share(store, key, "", self, size);
  } catch (const PeerError&) {
    // The store has gone, or a site that failed otherwise. This site knows what it needs.
  }
}

}  // namespace farstep::wan
