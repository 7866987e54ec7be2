// One line for each event, appended by one write(). A reader may follow the file while it grows,
// and a crash loses at most the line that was being written.
#include "trainer/telemetry/recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

// Returns the bytes of the file's complete lines. A process that was killed may have left half a
// line; the next line would be joined to it.
off_t complete_bytes(int descriptor) {
  off_t end = ::lseek(descriptor, 0, SEEK_END);
  char last = '\n';
  while (end > 0 && ::pread(descriptor, &last, 1, end - 1) == 1 && last != '\n') --end;
  return end;
}

}  // namespace

// O_APPEND makes one write() one line at the end, for every reader.
Recorder::Recorder(const std::filesystem::path& folder, std::string site, const Clock& clock)
    : path_(folder / kEventFile), site_(std::move(site)), clock_(clock) {
  if (folder.empty()) return;
  make_folder(folder);
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0 || ::ftruncate(descriptor_, complete_bytes(descriptor_)) != 0) {
    const std::string reason = std::strerror(errno);
    if (descriptor_ >= 0) ::close(descriptor_);
    throw DataError(fmt::format("{}: cannot be written: {}", path_.string(), reason));
  }
}

Recorder::~Recorder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Recorder::record(const Event& event) {
  append(event);
  throw_failure();
}

// After a failed write nothing more is written, so that the file has no gap.
void Recorder::append(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (descriptor_ < 0 || !failure_.empty()) return;
  const Json json = to_record({clock_.unix_seconds(), site_, event});
  const auto line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  errno = 0;
  const ssize_t written = ::write(descriptor_, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) {
    failure_ = fmt::format("{}: cannot be written: {}", path_.string(),
                           written < 0 ? std::strerror(errno) : "the disk is full");
  }
}

void Recorder::throw_failure() {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw DataError(failure_);
}

Span::Span(Recorder& recorder, SpanCause cause, int64_t round)
    : recorder_(recorder),
      event_{cause, round, recorder.clock_.unix_seconds(), 0},
      began_(recorder.clock_.now_seconds()) {}

Span::~Span() {
  end();
}

double Span::finish() {
  end();
  recorder_.throw_failure();
  return event_.seconds;
}

void Span::end() {
  // finish() reports a failure, and the destructor cannot: only the first of them counts.
  if (ended_) return;
  ended_ = true;
  event_.seconds = recorder_.clock_.now_seconds() - began_;
  recorder_.append(event_);
}

}  // namespace farstep
