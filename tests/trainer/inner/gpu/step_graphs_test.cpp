#include "trainer/inner/gpu/step_graphs.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace farstep {

namespace {

// A device that writes down what it does.
class ToldDevice {
 public:
  void give(const std::string& work) {
    (recording_ == nullptr ? done_ : *recording_).push_back(work);
  }
  std::vector<std::string> take() { return std::exchange(done_, {}); }

  std::unique_ptr<StepRecorder> recorder() { return std::make_unique<Recorder>(*this); }
  bool fails = false;
  int num_recordings = 0, num_alive = 0;

 private:
  class Replayed : public Recording {
   public:
    Replayed(ToldDevice& device, std::vector<std::string> work)
        : device_(device), work_(std::move(work)) {
      ++device_.num_alive;
    }
    ~Replayed() override { --device_.num_alive; }
    void replay() override {
      for (const auto& one : work_) device_.give("replayed " + one);
    }

   private:
    ToldDevice& device_;
    const std::vector<std::string> work_;
  };
  class Recorder : public StepRecorder {
   public:
    explicit Recorder(ToldDevice& device) : device_(device) {}
    std::unique_ptr<Recording> record(const std::function<void()>& work) override {
      std::vector<std::string> recorded;
      device_.recording_ = &recorded;
      work();
      device_.recording_ = nullptr;
      if (device_.fails) throw std::runtime_error("no room for it");
      ++device_.num_recordings;
      return std::make_unique<Replayed>(device_, recorded);
    }

   private:
    ToldDevice& device_;
  };

  std::vector<std::string>* recording_ = nullptr;
  std::vector<std::string> done_;
};

using Done = std::vector<std::string>;

struct Steps {
  ToldDevice device;
  StepGraphs graphs{device.recorder()};
  int64_t memory = 1;

  Done run(const StepShape& shape, int64_t memory_after = 0) {
    graphs.run(
        shape, [this] { return memory; },
        [&] {
          device.give("step");
          memory = std::max(memory, memory_after);
        });
    return device.take();
  }
};

const Done kGiven{"step"}, kReplayed{"replayed step"};

}  // namespace

TEST_CASE("a shape's first step is given and all later ones are replayed from one recording") {
  Steps steps;
  CHECK(steps.run({4, 8, 2}) == kGiven);
  for (int i = 0; i < 5; ++i) CHECK(steps.run({4, 8, 2}) == kReplayed);
  CHECK(steps.device.num_recordings == 1);
}

TEST_CASE("every part of a shape has a recording of its own") {
  Steps steps;
  const std::vector<StepShape> shapes{{4, 8, 2}, {5, 8, 2}, {4, 9, 2}, {4, 8, 1}};
  for (const auto& shape : shapes) CHECK(steps.run(shape) == kGiven);
  for (const auto& shape : shapes) CHECK(steps.run(shape) == kReplayed);
  CHECK(steps.device.num_recordings == 4);
}

TEST_CASE("memory that moves makes all recordings void") {
  Steps steps;
  steps.run({4, 8, 2});
  steps.run({4, 8, 2});
  CHECK(steps.run({9, 8, 2}, /*memory_after=*/2) == kGiven);
  CHECK(steps.device.num_alive == 0);
  CHECK(steps.run({9, 8, 2}) == kReplayed);
  CHECK(steps.run({4, 8, 2}) == kGiven);
  CHECK(steps.run({4, 8, 2}) == kReplayed);
  steps.memory = 3;  // someone else moved it
  CHECK(steps.run({4, 8, 2}) == kGiven);
  CHECK(steps.run({4, 8, 2}) == kReplayed);
}

TEST_CASE("the shape that was not used for longest is forgotten") {
  Steps steps;
  constexpr auto kMost = static_cast<int64_t>(StepGraphs::kMostShapes);
  for (int round = 0; round < 2; ++round) {
    for (int64_t i = 1; i <= kMost; ++i) steps.run({i, 8, 1});
  }
  CHECK(steps.device.num_alive == kMost);
  CHECK(steps.run({1, 8, 1}) == kReplayed);
  CHECK(steps.run({kMost + 1, 8, 1}) == kGiven);
  CHECK(steps.device.num_alive == kMost - 1);
  CHECK(steps.run({1, 8, 1}) == kReplayed);
  CHECK(steps.run({2, 8, 1}) == kGiven);
}

TEST_CASE("steps go on as they come where recording fails") {
  Steps steps;
  steps.run({4, 8, 2});
  steps.run({4, 8, 2});
  steps.device.fails = true;
  steps.run({5, 8, 2});
  CHECK(steps.run({5, 8, 2}) == kGiven);
  CHECK(steps.device.num_alive == 0);
  steps.device.fails = false;
  for (int i = 0; i < 3; ++i) CHECK(steps.run({4, 8, 2}) == kGiven);
}

TEST_CASE("without a recorder all steps are given as they come") {
  StepGraphs graphs(nullptr);
  int given = 0;
  for (int i = 0; i < 3; ++i) {
    graphs.run(
        {4, 8, 2}, [] { return int64_t{0}; }, [&] { ++given; });
  }
  CHECK(given == 3);
}

TEST_CASE("a first step that fails is a first step once more") {
  Steps steps;
  const auto failing = [&] {
    steps.graphs.run(
        {4, 8, 2}, [] { return int64_t{1}; }, [] { throw std::runtime_error("no memory"); });
  };
  CHECK_THROWS(failing());
  CHECK(steps.run({4, 8, 2}) == kGiven);
  CHECK(steps.run({4, 8, 2}) == kReplayed);
}

}  // namespace farstep
