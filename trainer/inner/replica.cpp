#include "trainer/inner/replica.h"

namespace farstep {

// The thread that will use the model makes it. Memory belongs to the processor whose thread touches
// it first, and LibTorch's settings are a thread's own.
Replica::Replica(const std::function<std::unique_ptr<TrainableModel>()>& make_model) {
  model_ = worker_.submit([&make_model] { return make_model(); }).get();
}

Replica::~Replica() {
  worker_.submit([this] { model_.reset(); }).wait();
}

}  // namespace farstep
