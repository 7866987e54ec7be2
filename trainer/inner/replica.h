// A device of a site besides the first: its own copy of the model, and the thread that drives it.
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
  // Runs `make_model` on the replica's thread, since a CPU slice's number of threads is a setting
  // of the thread. `make_model` opens the device and makes the model. Rethrows its exceptions.
  explicit Replica(const std::function<std::unique_ptr<TrainableModel>()>& make_model);
  // Destroys the model on its thread, as autograd keeps state there.
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
