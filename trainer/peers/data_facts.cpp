#include "trainer/peers/data_facts.h"

#include "trainer/base/error.h"
#include "trainer/config/strict_json.h"

namespace farstep {

namespace {

// Without a generation: the data is the run's.
constexpr const char* kKey = "data_facts";

}  // namespace

void tell_data_facts(const Json& facts, wan::Store& store) {
  store.put(kKey, facts.dump());
}

Json told_data_facts(const std::string& master, wan::Store& store) {
  const auto text = store.get(kKey);
  try {
    return parse_untrusted(text, "the message", {.depth = 8, .members = 64, .values = 100'000});
  } catch (const DataError& error) {
    throw PeerError(
        master, fmt::format("what {} tells of its data cannot be read: {}", master, error.what()));
  }
}

}  // namespace farstep
