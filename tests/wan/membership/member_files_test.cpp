// A member whose disk hangs, and what it sends of its files.
#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <future>

#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/wan/membership/puppet.h"
#include "trainer/base/system/file.h"
#include "wan/sockets/tcp.h"

namespace farstep::wan {
namespace {

// A file that whoever opens it waits for, as on a disk that hangs, until release().
class HangingFile {
 public:
  explicit HangingFile(std::filesystem::path path) : path_(std::move(path)) {
    REQUIRE(::mkfifo(path_.c_str(), 0600) == 0);
  }
  ~HangingFile() { release(); }

  // Lets go who waits, and removes the file. A writer's bytes are taken until this object ends.
  void release() {
    if (pipe_.fd() >= 0) return;
    pipe_ = Socket(::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    std::filesystem::remove(path_);
  }
  // The same, and tells a reader that nothing will come.
  void release_reader() {
    release();
    pipe_ = Socket();
  }

 private:
  const std::filesystem::path path_;
  Socket pipe_;
};

HeartbeatAckMessage has_records(int64_t bytes) {
  return {.sent_seconds = 0, .coordinator_seconds = 0, .records = bytes};
}

// Returns when the member has taken all that was sent to it before.
void wait_until_taken(Puppet& puppet) {
  auto put = std::async(std::launch::async, [&] { puppet.member.put("key", ""); });
  puppet.next<PutMessage>();
  puppet.send(StoredMessage{"key"});
  put.get();
}

TEST_CASE("heartbeats, activity and the goodbye go on while the disk of the records hangs") {
  const TemporaryFolder folder;
  auto deadlines = patient_deadlines();
  deadlines.leave_seconds = 4;
  Puppet puppet(0, {}, deadlines);
  HangingFile file(folder / "events.jsonl");
  puppet.member.send_records(folder / "events.jsonl");
  puppet.send(has_records(0));
  wait_until_taken(puppet);  // the read has been asked for
  for (int64_t step = 1; step <= 5; ++step) {
    puppet.send(has_records(0));
    puppet.member.set_activity(1, step, "training");
    while (puppet.next<HeartbeatMessage>().step != step) {
    }
  }
  const LogCapture log;
  auto left =
      std::async(std::launch::async, [&] { puppet.member.leave(Outcome::kInterrupted, "asked"); });
  CHECK(puppet.next<LeaveMessage>().message == "asked");
  puppet.send(GoodbyeMessage{});
  left.get();
  CHECK_THAT(log.text(), !Catch::Contains("did not answer the goodbye"));
  file.release_reader();
}

TEST_CASE("the records since the last heartbeat come before the goodbye") {
  const TemporaryFolder folder;
  const auto file = folder / "events.jsonl";
  write_file(file, "{\"line\":1}\n");
  Puppet puppet(0);
  puppet.member.send_records(file);
  puppet.send(has_records(0));
  const auto first = puppet.next<RecordsMessage>();
  CHECK(first.position == 0);
  CHECK(first.text == "{\"line\":1}\n");
  // More than a piece takes.
  const std::string line(kMostRecordsBytes - 1, 'x');
  std::ofstream(file, std::ios::app) << line << "\n" << line << "\n{\"half";
  auto left = std::async(std::launch::async, [&] { puppet.member.leave(Outcome::kDone, ""); });
  auto position = static_cast<int64_t>(first.text.size());
  for (int piece = 0; piece < 2; ++piece) {
    const auto message = decode_site_message(puppet.coordinator.receive().back());
    if (std::holds_alternative<HeartbeatMessage>(message)) {
      --piece;
      continue;
    }
    const auto* records = std::get_if<RecordsMessage>(&message);
    REQUIRE(records != nullptr);
    CHECK(records->position == position);
    CHECK(records->text == line + "\n");
    position += static_cast<int64_t>(records->text.size());
  }
  CHECK(puppet.next<LeaveMessage>().outcome == Outcome::kDone);
  puppet.send(GoodbyeMessage{});
  left.get();
}

TEST_CASE("heartbeats go on while the term cannot be written and a promise waits for that") {
  const TemporaryFolder folder;
  HangingFile file(folder / "term.partial");
  Puppet puppet(1, folder / "term");
  for (int beat = 0; beat < 5; ++beat) CHECK(puppet.next<HeartbeatMessage>().term == 0);
  puppet.send(ClaimMessage{.term = 2});
  for (int beat = 0; beat < 3; ++beat) CHECK(puppet.next<RegisterMessage>().term == 0);
  file.release();
  while (puppet.next<RegisterMessage>().term != 2) {
  }
  // A pipe cannot be flushed, so the try ends, with a warning. Other tests read the file.
}

}  // namespace
}  // namespace farstep::wan
