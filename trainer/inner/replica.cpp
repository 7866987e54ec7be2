#include "trainer/inner/replica.h"

namespace farstep {

Replica::Replica(const std::function<std::unique_ptr<TrainableModel>()>& make_model) {
  model_ = worker_.submit([&make_model] { return make_model(); }).get();
}

Replica::~Replica() {
  worker_.submit([this] { model_.reset(); }).wait();
}

}  // namespace farstep
