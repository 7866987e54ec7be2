// Writes a site's event records: FOLDER/events.jsonl, one line an event.
//
// A line is appended with one write(2), so a reader never sees two lines mixed, and what was
// recorded survives the process. A resumed run goes on in the same file. Thread-safe.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>

#include "trainer/base/clock.h"
#include "trainer/telemetry/event.h"

namespace farstep {

inline constexpr std::string_view kEventFile = "events.jsonl";

class Recorder;

// Measures a time without training work, and records it when it ends. Belongs to one thread; the
// recorder must outlive it.
class Span {
 public:
  Span(Recorder& recorder, SpanCause cause, int64_t round);
  // Finishes, unless that was done. A failed write is thrown by the recorder's next record().
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
  // Appends to the file in `folder`, made if need be; a line that a killed process left unfinished
  // is cut off. Throws DataError.
  Recorder(const std::filesystem::path& folder, std::string site, const Clock& clock);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Writes the event down, with the present time. Throws DataError if it, or an event before it,
  // cannot be written; InternalError if one of its numbers is not finite.
  void record(const Event& event);

  // Starts to measure; use as `const auto span = recorder.span(...)`.
  [[nodiscard]] Span span(SpanCause cause, int64_t round) { return Span(*this, cause, round); }

 private:
  friend class Span;
  // Writes, and keeps the reason of the first failure in failure_.
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
