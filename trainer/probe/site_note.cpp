// A note is text of others, so it is limited and read strictly.
#include "trainer/probe/site_note.h"

#include "trainer/base/error.h"
#include "trainer/base/system/printable.h"
#include "trainer/config/strict_json.h"

namespace farstep {

namespace {

constexpr std::size_t kLongestDigest = 64;  // of hex digits: longer than any that Farstep writes
constexpr std::size_t kLongestReason = 300;

// A digest is shown to a person.
void check_digest(const std::string& digest) {
  if (digest.size() <= kLongestDigest &&
      digest.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return;
  }
  throw DataError(fmt::format("data_digest: has not up to {} hex digits", kLongestDigest));
}

}  // namespace

SiteNote read_note(const std::string& site, const std::string& text) {
  try {
    auto note = read_untrusted<SiteNote>(text, "the note");
    check_digest(note.data_digest);
    return note;
  } catch (const DataError& error) {
    throw PeerError(site, fmt::format("what {} tells of its links cannot be read: {}", site,
                                      printable(error.what(), kLongestReason)));
  }
}

}  // namespace farstep
