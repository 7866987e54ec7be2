#include "trainer/model/gpu_ops/forked_stream.h"

#include <stdexcept>

#include "tests/support/catch.h"
#include "tests/support/emulated_gpu/stream_order.h"

namespace farstep {

namespace {

// Two streams over three arrays, with accesses that the order is told of.
struct Streams {
  StreamOrder order;
  ForkedStream fork{at::kCPU};
  cudaStream_t main = nullptr;
  float a = 0, b = 0, c = 0;

  Streams() {
    for (const float* array : {&a, &b, &c}) order.watch(array, sizeof(float));
  }
  static void read(const float& array, cudaStream_t stream) {
    emulate_work([&array] { tell_read(&array, sizeof array); }, stream);
  }
  static void write(const float& array, cudaStream_t stream) {
    emulate_work([&array] { tell_written(&array, sizeof array); }, stream);
  }
  void fork_read(const float& array) {
    fork.fork(main, {&array}, [&](cudaStream_t side) { read(array, side); });
  }
};

}  // namespace

TEST_CASE("work of a fork comes after what was given before and before what waits for it") {
  Streams streams;
  streams.write(streams.a, streams.main);
  streams.fork.fork(streams.main, {&streams.a}, [&](cudaStream_t side) {
    CHECK(current_stream(at::kCPU) == side);
    CHECK(side != streams.main);
    Streams::read(streams.a, side);
    Streams::write(streams.b, side);
  });
  CHECK(current_stream(at::kCPU) == streams.main);
  streams.read(streams.a, streams.main);
  streams.fork.let_write(streams.main, &streams.a);
  streams.write(streams.a, streams.main);
  streams.fork.join(streams.main);
  streams.read(streams.b, streams.main);
  CHECK(streams.order.faults().empty());
}

TEST_CASE("an array that is written without asking is found") {
  Streams streams;
  streams.fork_read(streams.a);
  streams.fork.let_write(streams.main, &streams.b);  // which the fork does not read
  streams.write(streams.a, streams.main);
  CHECK(streams.order.faults().size() == 1);
}

TEST_CASE("a result that is read without a join is found") {
  Streams streams;
  streams.fork.fork(streams.main, {}, [&](cudaStream_t side) { streams.write(streams.b, side); });
  streams.read(streams.b, streams.main);
  CHECK(streams.order.faults().size() == 1);
}

TEST_CASE("a fork waits no more often than it must") {
  Streams streams;
  streams.fork_read(streams.a);
  streams.fork_read(streams.b);
  const auto forks = streams.order.num_waits();
  CHECK(forks == 2);
  streams.fork.let_write(streams.main, &streams.c);
  CHECK(streams.order.num_waits() == forks);
  streams.fork.let_write(streams.main, &streams.b);
  streams.fork.let_write(streams.main, &streams.b);
  streams.fork.let_write(streams.main, &streams.a);  // before b in the fork's order
  streams.fork.join(streams.main);
  streams.fork.join(streams.main);
  CHECK(streams.order.num_waits() == forks + 1);
  streams.write(streams.a, streams.main);
  streams.fork_read(streams.a);
  streams.fork.let_write(streams.main, &streams.a);
  streams.write(streams.a, streams.main);
  CHECK(streams.order.num_waits() == forks + 3);
  CHECK(streams.order.faults().empty());
}

TEST_CASE("memory that the fork reads is not freed before it is asked for") {
  for (const bool asks : {true, false}) {
    Streams streams;
    streams.fork_read(streams.a);
    if (asks) streams.fork.let_write(streams.main, &streams.a);
    streams.order.free(&streams.a, streams.main);
    CHECK(streams.order.faults().empty() == asks);
  }
}

TEST_CASE("a recording takes a fork in if it is joined") {
  for (const bool joins : {true, false}) {
    Streams streams;
    streams.order.begin_recording(streams.main);
    streams.fork_read(streams.a);
    if (joins) streams.fork.join(streams.main);
    streams.order.end_recording();
    CHECK(streams.order.faults().empty() == joins);
  }
}

TEST_CASE("work of a stream that was not forked from a recorded one is found") {
  Streams streams;
  const SideStream other(at::kCPU);
  streams.order.begin_recording(streams.main);
  Streams::read(streams.a, other.get());
  streams.order.end_recording();
  CHECK(streams.order.faults().size() == 1);
}

TEST_CASE("after a pass that ended by an exception the fork begins anew") {
  Streams streams;
  const auto fails = [&] {
    streams.fork.fork(streams.main, {&streams.a},
                      [](cudaStream_t) { throw std::runtime_error("no memory"); });
  };
  CHECK_THROWS(fails());
  CHECK(current_stream(at::kCPU) == streams.main);
  streams.fork.begin();
  const auto waits = streams.order.num_waits();
  streams.fork.let_write(streams.main, &streams.a);
  streams.fork.join(streams.main);
  CHECK(streams.order.num_waits() == waits);
}

}  // namespace farstep
