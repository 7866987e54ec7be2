#include "tests/support/emulated_gpu/kernel_code.h"

#include <ucontext.h>

#include <csetjmp>
#include <memory>
#include <vector>

#include "trainer/base/error.h"

namespace farstep {

namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr std::size_t kSlotBytes = 16;

struct Thread {
  std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(kStackBytes);
  bool begun = false, ended = false;
  jmp_buf barrier = {};  // where it waits; contexts would take two system calls a turn
  alignas(kSlotBytes) std::byte slot[kSlotBytes] = {};
};

std::vector<Thread> threads_of_block;
jmp_buf scheduler;
const std::function<void()>* work = nullptr;

// Works for block after block.
void run_thread() {
  for (;;) {
    (*work)();
    threads_of_block[threadIdx.x].ended = true;
    emulated_barrier();
  }
}

[[noreturn]] void begin(Thread& thread) {
  thread.begun = true;
  ucontext_t context = {};
  getcontext(&context);
  context.uc_stack.ss_sp = thread.stack.get();
  context.uc_stack.ss_size = kStackBytes;
  makecontext(&context, run_thread, 0);
  setcontext(&context);
  throw InternalError("a thread of an emulated block does not begin");
}

// Returns when the thread has come to a barrier or to the block's end.
void resume(Thread& thread) {
  if (_setjmp(scheduler) != 0) return;
  if (thread.begun) _longjmp(thread.barrier, 1);
  begin(thread);
}

// Lets every thread run to its next barrier, or to the end; returns whether they have ended.
bool run_to_barrier(unsigned threads) {
  unsigned ended = 0;
  for (unsigned index = 0; index < threads; ++index) {
    threadIdx.x = index;
    resume(threads_of_block[index]);
    ended += threads_of_block[index].ended ? 1 : 0;
  }
  FARSTEP_CHECK(ended == 0 || ended == threads, "{} of {} threads do not come to a barrier", ended,
                threads);
  return ended == threads;
}

void run_block(unsigned threads) {
  for (unsigned index = 0; index < threads; ++index) threads_of_block[index].ended = false;
  while (!run_to_barrier(threads)) {
  }
}

}  // namespace

void* emulated_slot(unsigned thread) {
  return threads_of_block[thread].slot;
}

void emulated_barrier() {
  if (_setjmp(threads_of_block[threadIdx.x].barrier) == 0) _longjmp(scheduler, 1);
}

void run_emulated(const dim3& blocks, unsigned threads, const std::function<void()>& thread) {
  if (threads_of_block.size() < threads) threads_of_block = std::vector<Thread>(threads);
  work = &thread;
  gridDim = blocks;
  blockDim = dim3(threads);
  for (unsigned y = 0; y < blocks.y; ++y) {
    for (unsigned x = 0; x < blocks.x; ++x) {
      if (emulated_choice && !emulated_choice(x, blocks.x)) continue;
      blockIdx = dim3(x, y);
      run_block(threads);
    }
  }
}

}  // namespace farstep
