// What the streams of an emulated GPU do, and whether events order it. A GPU may do the work of
// several streams in any order that their events allow. So every read must come after the write
// whose values it needs, and every write after the reads and writes before it.
//
// Streams have vector clocks (Lamport 1978; Flanagan and Freund's "FastTrack", 2009, is the same
// for threads): an access is ordered after another if its stream's clock has the other's time. Of
// kernels every access is seen that their code makes, as far as it is compiled with
// -fsanitize=thread, whose calls come here instead; what libraries are to do is told by
// tell_read() and tell_written(). Only memory that is watched counts. Not thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace farstep {

class StreamOrder {
 public:
  // From here on it is told what the emulated GPU is given, until it is gone; one at a time.
  StreamOrder();
  ~StreamOrder();
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;
  static StreamOrder* current();

  // The wait of that number, from 0, is left out.
  void drop_wait(std::size_t number) { dropped_ = number; }

  // Memory in which accesses count, from when it is allocated to when it is freed. Freeing it is
  // for `stream` as a write: it may be handed out again for work of that stream. What cudaMalloc
  // allocates is watched by itself, and forgotten when it is freed, for which CUDA waits.
  void watch(const void* memory, std::size_t bytes);
  void free(const void* memory, cudaStream_t stream);
  void forget(const void* memory);

  // From one to the other, what is given is recorded as a CUDA graph from that stream on. CUDA
  // takes such work of a stream that waits for an event of a recorded one, and demands that
  // `stream` waits in the end for all of them.
  void begin_recording(cudaStream_t stream);
  void end_recording();

  // What is wrong, in the order in which it was found.
  const std::vector<std::string>& faults() const { return faults_; }
  std::size_t num_waits() const { return num_waits_; }
  std::size_t num_works(cudaStream_t stream) const;
  std::size_t num_accesses() const { return num_accesses_; }  // of watched memory

  // What the runtime and the kernels tell.
  void given(cudaStream_t stream);
  void begun(cudaStream_t stream);
  void ended() { is_working_ = false; }
  void recorded(cudaEvent_t event, cudaStream_t stream);
  void waits(cudaStream_t stream, cudaEvent_t event);
  void host_waits(cudaEvent_t event);
  void host_waits_for_all();
  void access(const void* memory, std::size_t bytes, bool writes);

 private:
  using Time = std::uint64_t;
  using Clock = std::map<cudaStream_t, Time>;
  struct Event {
    Clock clock;
    bool in_recording = false;
  };
  // Who accessed four bytes last.
  struct Word {
    cudaStream_t writer = nullptr;
    Time written = 0;  // 0: not yet
    Clock reads;
  };

  static void advance(Clock& clock, const Clock& to);
  static bool has(const Clock& clock, cudaStream_t stream, Time time);
  bool is_watched(std::uintptr_t address) const;
  void access_word(std::uintptr_t word, cudaStream_t stream, bool writes, const char* what);
  void fault(const std::string& text);

  std::map<cudaStream_t, Clock> clocks_;
  Clock host_;  // what the host has waited for
  std::map<cudaEvent_t, Event> events_;
  std::map<std::uintptr_t, std::size_t> watched_;   // beginning -> bytes
  std::unordered_map<std::uintptr_t, Word> words_;  // by a quarter of their address
  std::set<cudaStream_t> recorded_;                 // streams; empty: nothing is recorded
  cudaStream_t recorded_from_ = nullptr, working_ = nullptr;
  bool is_working_ = false;
  std::size_t dropped_ = SIZE_MAX, num_waits_ = 0, num_accesses_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace farstep
