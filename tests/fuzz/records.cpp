// What a site sends of its records, with restarts of the coordinator in between; then the page's
// reader over the copies.
//
// The input is a list of messages, ended by zeros: a byte with the site (bit 0), whether the
// coordinator restarts before (bit 1), how far the piece is from the copy's end (other bits), and
// the piece.

#include <algorithm>
#include <filesystem>
#include <optional>

#include "tests/fuzz/fuzz_input.h"
#include "trainer/account/run_follower.h"
#include "trainer/base/system/file.h"
#include "wan/membership/records.h"

using namespace farstep;

namespace {

namespace fs = std::filesystem;

// A copy is what its state says: so many bytes, of whole lines.
void check_copy(const fs::path& file, const wan::RecordsState& state) {
  std::error_code absent;
  const auto size = fs::file_size(file, absent);
  const auto bytes = absent ? 0 : static_cast<int64_t>(size);
  if (state.bytes >= 0 && state.bytes != bytes) __builtin_trap();
  if (state.bytes > 0 && (state.head.empty() || !read_file(file).ends_with('\n'))) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  auto input = text_of(data, size);
  const auto folder = emptied("copies");
  std::optional<wan::RecordsFolder> coordinator(std::in_place, folder);
  while (!input.empty()) {
    const auto message = input.substr(0, input.find('\0'));
    input.remove_prefix(std::min(message.size() + 1, input.size()));
    if (message.empty()) continue;
    const auto choice = static_cast<unsigned char>(message.front());
    const std::string site = choice % 2 == 0 ? "a" : "b";
    if ((choice & 2) != 0) coordinator.emplace(folder);
    const auto state = coordinator->state(site);
    const int64_t back = choice >> 2;
    const auto position = std::max<int64_t>(0, state.bytes + 2 - back);
    coordinator->take(site, {.position = position, .text = std::string(message.substr(1))});
    check_copy(folder / site / "events.jsonl", coordinator->state(site));
  }
  accept_or_refuse([&] {
    RunFollower page({folder});
    page.poll();
    page.poll();
  });
  return 0;
}
