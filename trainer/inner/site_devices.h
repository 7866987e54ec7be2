// The devices of a site: a model on each, and the thread that drives it. The first is driven by the
// thread that owns this, the training thread.
//
// Belongs to the training thread.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "trainer/inner/replica.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

class SiteDevices {
 public:
  // `first` must outlive this.
  SiteDevices(TrainableModel& first, std::vector<std::unique_ptr<Replica>> others)
      : first_(first), others_(std::move(others)) {}

  std::size_t size() const { return 1 + others_.size(); }
  TrainableModel& model(std::size_t device) const {
    return device == 0 ? first_ : others_.at(device - 1)->model();
  }

  // Runs task(device) on the device's thread; rethrows what it throws.
  void run_on(std::size_t device, const std::function<void(std::size_t)>& task);
  // Runs task(device) for all devices at once, and returns when all have ended: what each has
  // thrown, null for most.
  std::vector<std::exception_ptr> try_on_all(const std::function<void(std::size_t)>& task);
  // The same; rethrows what the first of those that threw has thrown.
  void run_on_all(const std::function<void(std::size_t)>& task);

 private:
  TrainableModel& first_;
  const std::vector<std::unique_ptr<Replica>> others_;
};

}  // namespace farstep
