// What fails on one of a site's devices, or finds no room there, and what becomes of the others.
#include <cmath>
#include <new>

#include "tests/support/catch.h"
#include "tests/trainer/inner/watched_model.h"
#include "trainer/base/error.h"
#include "trainer/base/memory/out_of_memory.h"

namespace farstep {

TEST_CASE("what fails on a device ends the step and leaves the models as they were") {
  for (const auto reduction : kReductions) {
    bool is_broken = true;
    auto model = small_model();
    const auto before = model.parameters().values().clone();
    InnerStep step(model, reducing(reduction), watched_replica([&](const at::Tensor&) {
                     if (is_broken) throw InternalError("this device is broken");
                   }));
    for (int i = 0; i < 10; ++i) {
      CHECK_THROWS_WITH(step.run(some_batch(4, 9, 1), Shares{2, 2}, 1, 0), "this device is broken");
    }
    CHECK(at::equal(model.parameters().values(), before));
    is_broken = false;  // and the next step is as if nothing had been
    step.run(some_batch(4, 9, 1), Shares{2, 2}, 1, 0.5);
    auto oracle = small_model();
    InnerStep(oracle, reducing(reduction), watched_replica([](const at::Tensor&) {}))
        .run(some_batch(4, 9, 1), Shares{2, 2}, 1, 0.5);
    CHECK(at::equal(model.parameters().values(), oracle.parameters().values()));
  }
}

TEST_CASE("what fails on the first device is what comes out") {
  Watched model([](const at::Tensor&) { throw InternalError("the first is broken"); });
  InnerStep step(model, inner_config(), watched_replica([](const at::Tensor&) {}));
  CHECK_THROWS_WITH(step.run(some_batch(4, 9, 1), Shares{2, 2}, 1, 0), "the first is broken");
}

TEST_CASE("a gradient that is not finite on one device is taken on none") {
  for (const auto reduction : kReductions) {
    SmallSite site(2, reducing(reduction));
    site.step().run(some_batch(2, 9, 1), Shares{1, 1}, 1, 0.5);
    auto& mirror = site.model(0).parameters().host_values();
    mirror.pull()[3] = std::nanf("");
    mirror.push();
    const auto before = site.values().clone();
    CHECK_THROWS_AS(site.step().run(some_batch(2, 9, 1), Shares{1, 1}, 1, 0.5), DivergenceError);
    CHECK(at::allclose(site.values(), before, 0, 0, /*equal_nan=*/true));
  }
}

TEST_CASE("a batch without room in memory names the largest micro-batch that fits") {
  for (const auto reduction : kReductions) {
    for (const std::size_t device : {0U, 1U}) {
      for (const int64_t fitting : {2, 5}) {
        const auto watch = with_room_for(fitting);
        const auto anything = [](const at::Tensor&) {};
        Watched model(device == 0 ? std::function<void(const at::Tensor&)>(watch) : anything);
        InnerStep step(model, reducing(reduction),
                       device == 1 ? watched_replica(watch) : watched_replica(anything));
        const auto before = model.parameters().values().clone();
        const auto wanted = fmt::format(
            "devices[{}]: its memory has no room for a micro-batch of 6 sequences of 9 tokens; the "
            "largest that fits is {}: ",
            device, fitting);
        CHECK_THROWS_WITH(step.run(some_batch(14, 9, 1), Shares{7, 7}, 6, 0),
                          Catch::StartsWith(wanted));
        CHECK_THROWS_AS(step.run(some_batch(14, 9, 1), Shares{7, 7}, 6, 0), NoRoomError);
        CHECK(at::equal(model.parameters().values(), before));
        step.run(some_batch(14, 9, 1), Shares{7, 7}, fitting, 0.5);
      }
    }
  }
}

TEST_CASE("memory that LibTorch cannot get is a lack of memory") {
  Watched watched([](const at::Tensor& tokens) {
    if (tokens.size(0) > 2) at::empty({int64_t{1} << 58});
  });
  InnerStep step(watched, inner_config());
  CHECK_THROWS_WITH(step.run(some_batch(4, 9, 1), 4, 0),
                    Catch::Contains("the largest that fits is 2"));
}

TEST_CASE("a device without room for one sequence says so") {
  Watched model([](const at::Tensor&) { throw std::bad_alloc(); });
  InnerStep step(model, inner_config());
  CHECK_THROWS_WITH(step.run(some_batch(3, 9, 1), 3, 0), Catch::Contains("not even one fits"));
}

TEST_CASE("a device that cannot be opened says so where its replica is made") {
  CHECK_THROWS_AS(Replica([]() -> std::unique_ptr<TrainableModel> { throw ConfigError("no GPU"); }),
                  ConfigError);
}

}  // namespace farstep
