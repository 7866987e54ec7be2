#include "trainer/checkpoint/checkpointer.h"

#include <algorithm>
#include <condition_variable>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/checkpoint/small_state.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/memory/snapshot.h"

using namespace farstep;

namespace {

constexpr double kLongSeconds = 60;

// A disk that the test opens and fails.
class FakeStore : public CheckpointStore {
 public:
  explicit FakeStore(std::vector<TrainProgress>& saved) : saved_(saved) {}

  SavedCheckpoint save(const TrainState& state, const std::stop_token& stop) override {
    std::unique_lock lock(mutex_);
    is_at_it_ = true;
    changed_.notify_all();
    changed_.wait(lock, stop, [this] { return is_open_; });
    if (stop.stop_requested()) throw DataError("given up");
    if (!failure_.empty()) throw DataError(failure_);
    saved_.push_back(state.progress);
    return {.entry = {.folder = "fake", .round = state.progress.round, .step = 0}, .bytes = 7};
  }

  void set(bool is_open, const std::string& failure = "") {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    failure_ = failure;
    changed_.notify_all();
  }
  void wait_until_at_it() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(60), [this] { return is_at_it_; }));
    is_at_it_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_open_ = true, is_at_it_ = false;
  std::string failure_;
  std::vector<TrainProgress>& saved_;
};

struct Parts {
  explicit Parts(double deadline_seconds = kLongSeconds) {
    auto owned = std::make_unique<FakeStore>(saved);
    store = owned.get();
    checkpointer.emplace(std::move(owned), deadline_seconds);
  }
  std::vector<TrainProgress> saved;
  FakeStore* store = nullptr;
  std::optional<Checkpointer> checkpointer;
};

CheckpointRequest request_of(const SmallState& small) {
  return {.state = small.state};
}

}  // namespace

TEST_CASE("a checkpoint is written behind its owner, who may ask or wait for it") {
  Parts parts;
  auto& checkpointer = *parts.checkpointer;
  CHECK(!checkpointer.collect());
  CHECK(!checkpointer.finish());
  CHECK_NOTHROW(checkpointer.wait_until_whole());
  const SmallState first(1, 0), second(2, 0);

  parts.store->set(false);
  checkpointer.begin(request_of(first));
  parts.store->wait_until_at_it();
  CHECK(checkpointer.is_under_way());
  CHECK(!checkpointer.collect());
  CHECK_THROWS_AS(checkpointer.begin(request_of(second)), InternalError);
  parts.store->set(true);
  const auto saved = checkpointer.finish();
  REQUIRE(saved);
  CHECK(saved->entry.round == 1);
  CHECK(saved->bytes == 7);
  CHECK(!checkpointer.is_under_way());

  checkpointer.begin(request_of(second));
  checkpointer.wait_until_whole();
  const auto collected = checkpointer.collect();
  REQUIRE(collected);
  CHECK(collected->entry.round == 2);
  CHECK(!checkpointer.collect());
  REQUIRE(parts.saved.size() == 2);
  CHECK(parts.saved[0].theta_hash == parts.saved[1].theta_hash);
}

TEST_CASE("the copy is made before the store is asked, and theta_global is hashed") {
  Parts parts;
  SmallState small(3, 0);
  bool is_copied = false;
  auto request = request_of(small);
  request.copy = [&] {
    is_copied = true;
    std::ranges::fill(small.state.global.front().bytes, std::byte{5});
  };
  parts.checkpointer->begin(std::move(request));
  parts.checkpointer->finish();
  CHECK(is_copied);
  std::vector<std::byte> flat;
  for (const auto& buffer : small.state.global) {
    flat.insert(flat.end(), buffer.bytes.begin(), buffer.bytes.end());
  }
  CHECK(parts.saved.at(0).theta_hash == checksum_text(checksum(flat)));
}

TEST_CASE("a full disk is told to whoever waits, once to the owner") {
  Parts parts;
  auto& checkpointer = *parts.checkpointer;
  const SmallState small(1, 0);
  parts.store->set(false);
  checkpointer.begin(request_of(small));
  std::string told;
  std::thread other([&] {
    try {
      checkpointer.wait_until_whole();
    } catch (const DataError& error) {
      told = error.what();
    }
  });
  parts.store->set(true, "No space left on device");
  CHECK_THROWS_WITH(checkpointer.finish(), Catch::Contains("No space left"));
  other.join();
  CHECK(told == "No space left on device");
  CHECK(!checkpointer.finish());
  CHECK_THROWS_AS(checkpointer.wait_until_whole(), DataError);

  parts.store->set(true);
  checkpointer.begin(request_of(small));
  CHECK_NOTHROW(checkpointer.wait_until_whole());
  CHECK(checkpointer.finish());
}

TEST_CASE("a disk that takes longer than the deadline ends the wait and the write") {
  Parts parts(0.05);
  const SmallState small(4, 0);
  parts.store->set(false);
  parts.checkpointer->begin(request_of(small));
  CHECK_THROWS_WITH(parts.checkpointer->finish(), Catch::Contains("checkpoint_seconds"));
  parts.checkpointer.reset();  // the store is told to stop, or this would not return
  CHECK(parts.saved.empty());
}

TEST_CASE("what is under way is finished when the checkpointer goes, and a failure is logged") {
  {
    Parts parts;
    const SmallState small(1, 0);
    parts.checkpointer->begin(request_of(small));
    parts.checkpointer.reset();
    CHECK(parts.saved.size() == 1);
  }
  const LogCapture log;
  Parts parts;
  const SmallState small(1, 0);
  parts.store->set(true, "No space left on device");
  parts.checkpointer->begin(request_of(small));
  parts.checkpointer.reset();
  CHECK(log.text().find("No space left on device") != std::string::npos);
}

TEST_CASE("folders get what the state was, though training goes on meanwhile") {
  const TemporaryFolder root;
  Checkpointer checkpointer(checkpoint_folders(root.path(), 2), kLongSeconds);
  Snapshot snapshot;
  constexpr int kRounds = 6;
  for (int64_t round = 1; round <= kRounds; ++round) {
    SmallState live(round, 0);
    const SmallState wanted(round, 0);
    auto request = request_of(live);
    request.state.site = snapshot.start(live.state.site);
    request.copy = [&] { snapshot.copy(); };
    checkpointer.begin(std::move(request));
    snapshot.hold();
    for (auto& buffer : live.state.site) std::ranges::fill(buffer.bytes, std::byte{9});
    checkpointer.wait_until_whole();
    for (auto& buffer : live.state.global) std::ranges::fill(buffer.bytes, std::byte{9});
    REQUIRE(checkpointer.finish());

    const auto found = resumable_checkpoints(root.path());
    REQUIRE(found.size() == std::min<std::size_t>(2, static_cast<std::size_t>(round)));
    SmallState loaded(round, 0, SmallState::kZeros);
    load_checkpoint(found.front(), loaded.state);
    loaded.state.progress.theta_hash = wanted.state.progress.theta_hash;
    CHECK(loaded == wanted);
  }
}

TEST_CASE("a write that is stopped leaves the checkpoints that were there") {
  const TemporaryFolder root;
  const SmallState first(1, 0), second(2, 0);
  save_checkpoint(root.path(), first.state);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(save_checkpoint(root.path(), second.state, stop.get_token()), DataError);
  const auto found = resumable_checkpoints(root.path());
  REQUIRE(found.size() == 1);
  CHECK(found.front().round == 1);
}
