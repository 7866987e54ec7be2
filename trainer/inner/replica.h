// A device beside a site's first: its own copy of the model, and the thread that drives it.
//
// Belongs to the training thread, like the model.
#pragma once

#include <functional>
#include <future>
#include <memory>

#include "trainer/base/worker.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

class Replica {
 public:
  // `make_model` opens the device and makes the model, on the replica's thread, as the number of
  // threads of a cpu slice belongs to the thread. Rethrows what it throws.
  explicit Replica(const std::function<std::unique_ptr<TrainableModel>()>& make_model);
  // Drops the model on its thread, as autograd keeps state there.
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  TrainableModel& model() { return *model_; }
  // Runs `task` on the replica's thread.
  template <typename Task>
  auto submit(Task task) {
    return worker_.submit(std::move(task));
  }

 private:
  std::unique_ptr<TrainableModel> model_;
  Worker worker_;
};

}  // namespace farstep
