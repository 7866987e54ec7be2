#include "tests/support/emulated_gpu/stream_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

namespace {

StreamOrder* told = nullptr;

std::uintptr_t number_of(const void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

}  // namespace

StreamOrder::StreamOrder() {
  FARSTEP_CHECK(told == nullptr, "another order is told already");
  told = this;
}
StreamOrder::~StreamOrder() {
  told = nullptr;
}
StreamOrder* StreamOrder::current() {
  return told;
}

void StreamOrder::watch(const void* memory, std::size_t bytes) {
  if (bytes > 0) watched_[number_of(memory)] = bytes;
}

void StreamOrder::free(const void* memory, cudaStream_t stream) {
  const auto found = watched_.find(number_of(memory));
  if (found == watched_.end()) return;
  const auto [begin, bytes] = *found;
  for (auto word = begin / 4; word <= (begin + bytes - 1) / 4; ++word) {
    if (words_.contains(word)) access_word(word, stream, /*writes=*/true, "is freed for");
  }
  forget(memory);
}

void StreamOrder::forget(const void* memory) {
  const auto found = watched_.find(number_of(memory));
  if (found == watched_.end()) return;
  const auto [begin, bytes] = *found;
  for (auto word = begin / 4; word <= (begin + bytes - 1) / 4; ++word) words_.erase(word);
  watched_.erase(found);
}

void StreamOrder::begin_recording(cudaStream_t stream) {
  recorded_ = {stream};
  recorded_from_ = stream;
}

void StreamOrder::end_recording() {
  const Clock& end = clocks_[recorded_from_];
  for (const auto stream : recorded_) {
    if (!has(end, stream, clocks_[stream][stream])) {
      fault(fmt::format("the recording ends without the work of stream {}", number_of(stream)));
    }
  }
  recorded_.clear();
}

std::size_t StreamOrder::num_works(cudaStream_t stream) const {
  const auto clock = clocks_.find(stream);
  if (clock == clocks_.end()) return 0;
  const auto own = clock->second.find(stream);
  return own == clock->second.end() ? 0 : static_cast<std::size_t>(own->second);
}

void StreamOrder::given(cudaStream_t stream) {
  advance(clocks_[stream], host_);
  if (recorded_.empty() || recorded_.contains(stream)) return;
  fault(fmt::format("stream {} is given work that is not recorded", number_of(stream)));
}

void StreamOrder::begun(cudaStream_t stream) {
  ++clocks_[stream][stream];
  working_ = stream;
  is_working_ = true;
}

void StreamOrder::recorded(cudaEvent_t event, cudaStream_t stream) {
  events_[event] = {clocks_[stream], recorded_.contains(stream)};
}

void StreamOrder::waits(cudaStream_t stream, cudaEvent_t event) {
  if (num_waits_++ == dropped_) return;
  const auto found = events_.find(event);
  if (found == events_.end()) return;  // CUDA does not wait for an event that was never recorded
  if (found->second.in_recording && !recorded_.empty()) {
    recorded_.insert(stream);
  } else if (found->second.in_recording || recorded_.contains(stream)) {
    fault(fmt::format("stream {} waits across the border of a recording", number_of(stream)));
  }
  advance(clocks_[stream], found->second.clock);
}

void StreamOrder::host_waits(cudaEvent_t event) {
  const auto found = events_.find(event);
  if (found != events_.end()) advance(host_, found->second.clock);
}

void StreamOrder::host_waits_for_all() {
  for (const auto& [stream, clock] : clocks_) advance(host_, clock);
}

void StreamOrder::advance(Clock& clock, const Clock& to) {
  for (const auto& [stream, time] : to) clock[stream] = std::max(clock[stream], time);
}

void StreamOrder::access(const void* memory, std::size_t bytes, bool writes) {
  const auto address = number_of(memory);
  if (!is_working_ || bytes == 0 || !is_watched(address)) return;
  ++num_accesses_;
  for (auto word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    access_word(word, working_, writes, writes ? "is written by" : "is read by");
  }
}

bool StreamOrder::has(const Clock& clock, cudaStream_t stream, Time time) {
  if (time == 0) return true;
  const auto found = clock.find(stream);
  return found != clock.end() && found->second >= time;
}

bool StreamOrder::is_watched(std::uintptr_t address) const {
  auto after = watched_.upper_bound(address);
  if (after == watched_.begin()) return false;
  const auto& [begin, bytes] = *--after;
  return address < begin + bytes;
}

void StreamOrder::access_word(std::uintptr_t word, cudaStream_t stream, bool writes,
                              const char* what) {
  auto& known = words_[word];
  const Clock& clock = clocks_[stream];
  const auto complain = [&](const char* before, cudaStream_t other) {
    fault(fmt::format("{:#x} {} stream {} and {} stream {}, in no order", 4 * word, before,
                      number_of(other), what, number_of(stream)));
  };
  if (!has(clock, known.writer, known.written)) complain("is written by", known.writer);
  if (!writes) {
    known.reads[stream] = clocks_[stream][stream];
    return;
  }
  for (const auto& [reader, time] : known.reads) {
    if (!has(clock, reader, time)) complain("is read by", reader);
  }
  known = {stream, clocks_[stream][stream], {}};
}

void StreamOrder::fault(const std::string& text) {
  constexpr std::size_t kMost = 20;  // one missing wait is found at every word of an array
  if (faults_.size() < kMost) faults_.push_back(text);
}

void tell_given(cudaStream_t stream) {
  if (told != nullptr) told->given(stream);
}
void tell_begun(cudaStream_t stream) {
  if (told != nullptr) told->begun(stream);
}
void tell_ended() {
  if (told != nullptr) told->ended();
}
void tell_recorded(cudaEvent_t event, cudaStream_t stream) {
  if (told != nullptr) told->recorded(event, stream);
}
void tell_waits(cudaStream_t stream, cudaEvent_t event) {
  if (told != nullptr) told->waits(stream, event);
}
void tell_host_waits(cudaEvent_t event) {
  if (told != nullptr) told->host_waits(event);
}
void tell_host_waits_for_all() {
  if (told != nullptr) told->host_waits_for_all();
}
void tell_allocated(const void* memory, std::size_t bytes) {
  if (told != nullptr) told->watch(memory, bytes);
}
void tell_freed(const void* memory) {
  if (told != nullptr) told->forget(memory);
}
void tell_read(const void* memory, std::size_t bytes) {
  if (told != nullptr) told->access(memory, bytes, /*writes=*/false);
}
void tell_written(const void* memory, std::size_t bytes) {
  if (told != nullptr) told->access(memory, bytes, /*writes=*/true);
}

}  // namespace farstep

// What the compiler has kernels call with -fsanitize=thread; its own library is not linked.
#define FARSTEP_ACCESSES(bytes)                      \
  void __tsan_read##bytes(void* memory) {            \
    farstep::tell_read(memory, bytes);               \
  }                                                  \
  void __tsan_write##bytes(void* memory) {           \
    farstep::tell_written(memory, bytes);            \
  }                                                  \
  void __tsan_unaligned_read##bytes(void* memory) {  \
    farstep::tell_read(memory, bytes);               \
  }                                                  \
  void __tsan_unaligned_write##bytes(void* memory) { \
    farstep::tell_written(memory, bytes);            \
  }

extern "C" {
FARSTEP_ACCESSES(1)
FARSTEP_ACCESSES(2)
FARSTEP_ACCESSES(4)
FARSTEP_ACCESSES(8)
FARSTEP_ACCESSES(16)
void __tsan_read_range(void* memory, unsigned long bytes) {
  farstep::tell_read(memory, bytes);
}
void __tsan_write_range(void* memory, unsigned long bytes) {
  farstep::tell_written(memory, bytes);
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void*) {}
void __tsan_init() {}
}
