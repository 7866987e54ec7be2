#include "trainer/peers/data_facts.h"

#include "trainer/base/error.h"
#include "trainer/config/json_limits.h"

namespace farstep {

namespace {

// Without a generation: the data is the run's.
constexpr const char* kKey = "data_facts";

}  // namespace

void tell_data_facts(const Json& facts, Store& store) {
  store.put(kKey, facts.dump());
}

Json told_data_facts(const std::string& master, Store& store) {
  const auto text = store.get(kKey);
  try {
    check_json_limits(text, {.depth = 8, .members = 64, .values = 100'000});
    return Json::parse(text);
  } catch (const std::exception& error) {
    throw PeerError(
        master, fmt::format("what {} tells of its data cannot be read: {}", master, error.what()));
  }
}

}  // namespace farstep
