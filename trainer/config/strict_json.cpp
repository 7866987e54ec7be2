#include "trainer/config/strict_json.h"

#include "trainer/base/system/printable.h"

namespace farstep {

namespace {

// The place and what is wrong there come first, and the text that was read last. So a cut leaves
// what helps.
constexpr std::size_t kMostCharacters = 200;

}  // namespace

// It begins with "[json.exception.KIND.NUMBER] ", of which a reader learns nothing.
std::string json_fault(const nlohmann::json::exception& error) {
  std::string_view text = error.what();
  const auto kind_end = text.find("] ");
  if (text.starts_with('[') && kind_end != text.npos) text.remove_prefix(kind_end + 2);
  return printable(text, kMostCharacters);
}

namespace detail {

// As ASCII and cut: the text may be a stranger's.
void refuse_second_member(const std::string& name) {
  const auto quoted = Json(name).dump(-1, ' ', true);
  throw DataError(fmt::format("member '{:.80}' stands twice", quoted.substr(1, quoted.size() - 2)));
}

}  // namespace detail

}  // namespace farstep
