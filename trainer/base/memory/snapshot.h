// A copy of buffers that one thread makes while the thread that changes them does other work.
//
//   owner:  start() ... hold(), which waits for the copy; then it changes the buffers
//   other:  copy()
//
// The owner's thread calls start() and hold(); one other thread calls copy(). The copy's memory is
// as large as all buffers, in huge pages where the system has them. The first start() allocates it
// and later ones reuse it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "trainer/base/memory/aligned_memory.h"
#include "trainer/base/memory/named_buffers.h"

namespace farstep {

class Snapshot {
 public:
  // Returns the buffers of the copy, which will hold the present content of `live`. `live` must not
  // change until hold() has returned. The copy before must be complete.
  NamedBuffers start(NamedBuffers live);
  // Makes the copy that start() requested.
  void copy();
  // Waits until a requested copy is complete; returns the seconds that it waited. Throws
  // InternalError after ten minutes.
  double hold();

 private:
  NamedBuffers live_, copies_;
  AlignedMemory memory_;
  std::size_t memory_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable made_;
  bool is_pending_ = false;  // guarded by mutex_; a copy was requested and is not complete
};

}  // namespace farstep
