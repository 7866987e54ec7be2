#include "trainer/base/newest_task.h"

#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/catch.h"

using namespace farstep;

namespace {

// What tasks did, in their order. Thread-safe.
class Notes {
 public:
  void add(const std::string& note) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(note);
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;  // guarded by mutex_
};

}  // namespace

TEST_CASE("a newer task does not wait for an older one that is slow to stop, and runs after it") {
  Notes notes;
  std::promise<void> has_begun, may_end;
  {
    NewestTask newest;
    newest.replace([&](const std::stop_token& stop) {
      has_begun.set_value();
      may_end.get_future().wait();
      notes.add(stop.stop_requested() ? "first was stopped" : "first goes on");
    });
    has_begun.get_future().wait();
    std::promise<void> second_ran;
    newest.replace([&](const std::stop_token&) {
      notes.add("second");
      second_ran.set_value();
    });
    CHECK(notes.all().empty());  // replace() has returned, and the first has not ended
    may_end.set_value();
    second_ran.get_future().wait();
  }
  CHECK(notes.all() == std::vector<std::string>{"first was stopped", "second"});
}

TEST_CASE("a task that is replaced before it begins does not run") {
  Notes notes;
  std::promise<void> has_begun, may_end;
  {
    NewestTask newest;
    newest.replace([&](const std::stop_token&) {
      has_begun.set_value();
      may_end.get_future().wait();
    });
    has_begun.get_future().wait();
    for (int i = 0; i < 3; ++i) {
      newest.replace([&](const std::stop_token&) { notes.add("replaced"); });
    }
    std::promise<void> ran;
    newest.replace([&](const std::stop_token&) {
      notes.add("newest");
      ran.set_value();
    });
    may_end.set_value();
    ran.get_future().wait();
  }
  CHECK(notes.all() == std::vector<std::string>{"newest"});
}

TEST_CASE("finishing waits for the end of the task, and stops it only if that is requested") {
  for (const bool is_stopped : {false, true}) {
    CAPTURE(is_stopped);
    Notes notes;
    NewestTask newest;
    newest.finish({});  // without a task there is nothing to wait for
    std::stop_source source;
    std::promise<void> has_begun, is_let_go;
    newest.replace([&](const std::stop_token& stop) {
      const std::stop_callback callback(stop, [&] { is_let_go.set_value(); });
      has_begun.set_value();
      is_let_go.get_future().wait();
      notes.add(stop.stop_requested() ? "stopped" : "done");
    });
    has_begun.get_future().wait();
    std::jthread other([&] { is_stopped ? void(source.request_stop()) : is_let_go.set_value(); });
    newest.finish(source.get_token());
    CHECK(notes.all() == std::vector<std::string>{is_stopped ? "stopped" : "done"});
    newest.replace([&](const std::stop_token&) { notes.add("next"); });
    newest.finish({});
    CHECK(notes.all().back() == "next");
  }
}

TEST_CASE("the end of the owner stops the task and waits for it") {
  Notes notes;
  {
    NewestTask newest;
    std::promise<void> has_begun;
    newest.replace([&](const std::stop_token& stop) {
      has_begun.set_value();
      std::promise<void> stopped;
      const std::stop_callback callback(stop, [&] { stopped.set_value(); });
      stopped.get_future().wait();
      notes.add("stopped");
    });
    has_begun.get_future().wait();
  }
  CHECK(notes.all() == std::vector<std::string>{"stopped"});
  NewestTask none;  // without a task there is nothing to wait for
}
