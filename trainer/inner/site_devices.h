// The devices of a site: a model on each, and the thread that drives it. The owner's thread, the
// training thread, drives the first device.
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

  // Runs task(device) on the device's thread; rethrows its exception.
  void run_on(std::size_t device, const std::function<void(std::size_t)>& task);
  // Runs task(device) for all devices at once, and returns when all have ended. Returns the
  // exception of each device; null for success.
  std::vector<std::exception_ptr> try_on_all(const std::function<void(std::size_t)>& task);
  // The same; rethrows the exception of the first device that threw.
  void run_on_all(const std::function<void(std::size_t)>& task);

 private:
  TrainableModel& first_;
  const std::vector<std::unique_ptr<Replica>> others_;
};

}  // namespace farstep
