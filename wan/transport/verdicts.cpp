// Every site hears the verdicts of all, so that all throw the same error. The site with the store
// must not end first: the others could not read the reasons any more.
#include "wan/transport/verdicts.h"

#include "trainer/base/error.h"

namespace farstep {

void share_verdicts(Store& store, const std::string& prefix, int self, int size,
                    const std::string& own) {
  store.put(fmt::format("{}/verdict/{}", prefix, self), own);
  std::string all;
  for (int rank = 0; rank < size; ++rank) {
    const auto verdict = store.get(fmt::format("{}/verdict/{}", prefix, rank));
    if (!verdict.empty()) all += (all.empty() ? "" : "\n") + verdict;
  }
  if (all.empty()) return;
  wait_until_all_know(store, prefix + "/known", self, size);
  throw ConfigError(all);
}

}  // namespace farstep
