// Gradients of weights are needed only at the end of backward. So their products run on a second
// stream, and use the multiprocessors that another product leaves free at its end. An array that a
// fork still reads must not be written: each array remembers its last reader.
#include "trainer/model/gpu_ops/forked_stream.h"

namespace farstep {

ForkedStream::~ForkedStream() {
  // A destructor must not throw, so the error is ignored.
  if (num_works_ > 0) cudaStreamSynchronize(side_.get());  // the owner frees its inputs next
}

void ForkedStream::begin() {
  // After an exception work may be under way that no join has waited for.
  if (num_works_ > 0) FARSTEP_CUDA_CHECK(cudaStreamSynchronize(side_.get()));
  forget();
}

void ForkedStream::fork(cudaStream_t main, std::initializer_list<const void*> arrays,
                        const std::function<void(cudaStream_t)>& work) {
  // Events are made once and reused in all passes.
  if (num_works_ == done_.size()) done_.emplace_back(cudaEventDisableTiming);
  forked_.record(main);
  forked_.hold(side_.get());
  auto& done = done_[num_works_++];
  side_.run([&] { work(side_.get()); });
  done.record(side_.get());
  for (const void* array : arrays) num_reading_[array] = num_works_;
}

void ForkedStream::let_write(cudaStream_t main, const void* array) {
  const auto found = num_reading_.find(array);
  // A wait for a later work includes all before it, because the fork runs in order. So one number
  // per array suffices.
  if (found == num_reading_.end() || found->second <= num_waited_) return;
  num_waited_ = found->second;
  done_[num_waited_ - 1].hold(main);
}

void ForkedStream::join(cudaStream_t main) {
  if (num_works_ > num_waited_) done_[num_works_ - 1].hold(main);
  forget();
}

void ForkedStream::forget() {
  num_works_ = num_waited_ = 0;
  num_reading_.clear();
}

}  // namespace farstep
