#include "trainer/kernels/past_cache.h"

#include <algorithm>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace farstep {

#ifdef __SSE__

void copy_past_cache(const float* from, int64_t size, float* to) {
  constexpr int64_t kLine = 64 / sizeof(float);
  constexpr int64_t kVector = 4;
  const auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) / sizeof(float) % kLine);
  const int64_t before = std::min(size, (kLine - offset) % kLine);
  std::copy_n(from, before, to);
  int64_t done = before;
  for (; done + kLine <= size; done += kLine) {  // whole lines, which nothing then has to read
    for (int64_t i = done; i < done + kLine; i += kVector) {
      _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
    }
  }
  std::copy_n(from + done, size - done, to + done);
  _mm_sfence();  // other threads see it as they see ordinary stores
}

#else

void copy_past_cache(const float* from, int64_t size, float* to) {
  std::copy_n(from, size, to);
}

#endif

}  // namespace farstep
