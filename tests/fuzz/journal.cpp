// The coordinator's journal, also with the right checksum, and the roster that goes on from it.

#include <algorithm>

#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/journal_run.h"
#include "wan/membership/journal.h"
#include "wan/roster/roster.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto run = journal_run();
  const auto input = text_of(data, size);
  accept_or_refuse([&] { journal_state(input, run, "journal"); });
  accept_or_refuse([&] {
    const auto body = input.substr(std::min(input.find('\n'), size - 1) + 1);
    const auto state = journal_state(wan::checked_journal(body), run, "journal");
    wan::Roster roster(run, wan::Deadlines{}, state, 0);
    // What it goes on with is what it would write.
    journal_state(journal_text(roster.state(), run), run, "journal");
    for (const auto* connection : {"a", "b", "c"}) {
      roster.receive(connection, wan::HeartbeatMessage{0, 0, 0, "", 1, 1}, 1);
      roster.receive(connection, wan::ArriveMessage{1, 1, 0, {}, "aa"}, 1);
      roster.receive(connection, wan::VoteMessage{1, 1, 0, "bb"}, 1);
    }
    for (const auto& [connection, message] : roster.tick(1000)) encode(message);
    roster.is_over();
  });
  return 0;
}
