// Writes a site's event records to FOLDER/events.jsonl, one line for each event.
//
// One write(2) appends a line, so readers never see two lines mixed, and recorded events survive
// the process. A resumed run appends to the same file. Thread-safe.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>

#include "trainer/base/clock.h"
#include "trainer/telemetry/event.h"

namespace farstep {

inline constexpr std::string_view kEventFile = "events.jsonl";
// In the folder of the site, or of the process, with the coordinator: copies of all sites' files.
inline constexpr std::string_view kCopiesFolder = "all_sites";

class Recorder;

// Measures a time without training work and records it when it ends. One thread uses it; the
// recorder must outlive it.
class Span {
 public:
  Span(Recorder& recorder, SpanCause cause, int64_t round);
  // Ends the span if finish() was not called. The recorder's next record() throws a failed write.
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  // Ends the span, records it and returns its seconds; later calls return the same. Throws
  // DataError if it cannot be written.
  double finish();

 private:
  void end();

  Recorder& recorder_;
  SpanEvent event_;
  const double began_;  // on the clock's steady scale
  bool ended_ = false;
};

class Recorder {
 public:
  // Appends to the file in `folder`, which is created if necessary. Removes a line that a killed
  // process left unfinished. An empty `folder` keeps no record. Throws DataError.
  Recorder(const std::filesystem::path& folder, std::string site, const Clock& clock);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Writes the event with the present time. Throws DataError if it or an earlier event cannot be
  // written, InternalError if one of its numbers is not finite.
  void record(const Event& event);

  // Starts a span; use as `const auto span = recorder.span(...)`.
  [[nodiscard]] Span span(SpanCause cause, int64_t round) { return Span(*this, cause, round); }

 private:
  friend class Span;
  // Writes; keeps the reason of the first failure in failure_.
  void append(const Event& event);
  void throw_failure();

  const std::filesystem::path path_;
  const std::string site_;
  const Clock& clock_;
  std::mutex mutex_;
  int descriptor_ = -1;  // guarded by mutex_, as is failure_
  std::string failure_;
};

}  // namespace farstep
