// The streams of a pass on a GPU that the CPU emulates: every access of every kernel and product is
// ordered, and would not be without any one of the waits.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <memory>

#include "tests/support/catch.h"
#include "tests/support/emulated_gpu/stream_order.h"
#include "tests/trainer/model/llama/random_model.h"
#include "trainer/model/fused/fused_llama.h"
#include "trainer/model/gpu_ops/fp8_gpu_ops.h"

namespace farstep {

namespace {

// LibTorch's memory, which the order watches while there is one.
class WatchedAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* const order = StreamOrder::current();
    auto own = c10::GetDefaultCPUAllocator()->allocate(bytes);
    if (order != nullptr) order->watch(own.get(), bytes);
    void* const memory = own.get();
    return {memory, new c10::DataPtr(std::move(own)), &release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void release(void* context) {
    const std::unique_ptr<c10::DataPtr> own(static_cast<c10::DataPtr*>(context));
    if (auto* const order = StreamOrder::current()) {
      order->free(own->get(), current_stream(at::kCPU));
    }
  }
};

void watch_memory() {
  static WatchedAllocator allocator;
  // LibTorch's own has a lower priority, and stays the default one.
  c10::SetAllocator(at::kCPU, &allocator, /*priority=*/200);
}

const LlamaConfig kConfig{.vocabulary = 61,
                          .hidden = 32,
                          .intermediate = 48,
                          .layers = 2,
                          .heads = 4,
                          .kv_heads = 2,
                          .tied_embeddings = true};

struct PassKind {
  bool fp8 = false, recompute = false, tied = true, ready = false;
};

const PassKind kKinds[] = {
    {},
    {.recompute = true},
    {.tied = false},
    {.ready = true},
    {.fp8 = true},
    {.fp8 = true, .recompute = true},
    {.fp8 = true, .tied = false, .ready = true},
};

class Pass {
 public:
  explicit Pass(const PassKind& kind) : kind_(kind) {
    auto config = kConfig;
    config.tied_embeddings = kind.tied;
    std::unique_ptr<GpuOps> ops;
    if (kind.fp8) {
      ops = std::make_unique<Fp8GpuOps>(at::kCPU);
    } else {
      ops = std::make_unique<GpuOps>(at::kCPU);
    }
    model_ = std::make_unique<FusedLlama<BF16>>(config, std::move(ops), kind.recompute);
    randomise(model_->parameters(), 7);
    tokens_ = at::remainder(at::arange(2 * 17, at::kLong).view({2, 17}), kConfig.vocabulary);
  }

  // Two micro-batches and a gradient's use, as a step has them.
  void run() {
    for (const bool add : {false, true}) {
      GradientPass pass{.scale = 1, .add = add};
      if (kind_.ready) {
        pass.ready = [this](int64_t begin, int64_t end) { use(begin, end); };
      }
      model_->backpropagate(tokens_, pass);
    }
    use(0, model_->parameters().size());
  }

  at::Tensor gradients() { return model_->parameters().gradients(); }

 private:
  void use(int64_t begin, int64_t end) {
    const auto* const values = gradients().const_data_ptr<float>() + begin;
    const auto bytes = static_cast<std::size_t>(end - begin) * sizeof(float);
    emulate_work([=] { tell_read(values, bytes); });
  }

  const PassKind kind_;
  std::unique_ptr<FusedLlama<BF16>> model_;
  at::Tensor tokens_;
};

// A pass from its model's beginning on, without the wait of that number.
std::vector<std::string> faults_without(const PassKind& kind, std::size_t wait) {
  StreamOrder order;
  order.drop_wait(wait);
  Pass(kind).run();
  return order.faults();
}

}  // namespace

TEST_CASE("every access of a pass's streams is ordered, recorded or not") {
  watch_memory();
  for (const auto& kind : kKinds) {
    for (const bool records : {false, true}) {
      CAPTURE(kind.fp8, kind.recompute, kind.tied, kind.ready, records);
      StreamOrder order;
      Pass pass(kind);
      pass.run();
      if (records) {
        order.begin_recording(nullptr);
        pass.run();
        order.end_recording();
      }
      CHECK(order.faults() == std::vector<std::string>{});
      CHECK(order.num_accesses() > 10'000);
    }
  }
}

TEST_CASE("without any one of its waits a pass is not ordered") {
  watch_memory();
  for (const auto& kind : {PassKind{}, PassKind{.fp8 = true, .recompute = true}}) {
    CAPTURE(kind.fp8, kind.recompute);
    std::size_t waits = 0, needed = 0;
    {
      StreamOrder order;
      Pass(kind).run();
      waits = order.num_waits();
    }
    // Of each micro-batch a fork for every matrix, and the join.
    CHECK(waits >= static_cast<std::size_t>(2 * (4 * kConfig.layers + 2)));
    for (std::size_t wait = 0; wait < waits; ++wait) {
      needed += faults_without(kind, wait).empty() ? 0 : 1;
    }
    // But for one a layer in bf16, where the matrices of a feed-forward are forked after one
    // kernel.
    const auto implied = kind.fp8 ? 0 : static_cast<std::size_t>(2 * kConfig.layers);
    CHECK(needed == waits - implied);
  }
}

}  // namespace farstep
