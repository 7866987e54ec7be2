// A resumed process repeats what its checkpoint did not have, in the same file. Its `run` record
// names the point at which it goes on, and everything beyond that point is dropped from before the
// record. So a report counts each step, second and byte once. The file keeps every complete line.
#include "trainer/telemetry/event_log.h"

#include <algorithm>
#include <fstream>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

// Parses the complete lines of `text`, which begins with line `first_line`. Returns their bytes.
std::size_t parse_lines(std::string_view text, const std::string& file, int64_t first_line,
                        std::vector<Record>& into) {
  std::size_t begin = 0;
  for (auto end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
    into.push_back(parse_record(text.substr(begin, end - begin), file, first_line++));
    begin = end + 1;
  }
  return begin;
}

std::string unfinished_note(const std::filesystem::path& file, std::size_t bytes) {
  if (bytes == 0) return "";
  return fmt::format("{}: the last line is unfinished and was left out ({} bytes)", file.string(),
                     bytes);
}

// Whether a record is beyond the point of `start` (see without_abandoned()). `at_point`: the record
// comes after the last step and sync before that point.
bool is_beyond(const Event& event, const RunEvent& start, bool at_point) {
  const int64_t next_round = start.start_round + 1;
  if (const auto* step = std::get_if<StepEvent>(&event)) {
    return step->round > next_round || (step->round == next_round && step->step > start.start_step);
  }
  if (const auto* sync = std::get_if<SyncEvent>(&event)) {
    return sync->round > next_round ||
           (sync->round == next_round && sync->fragment >= start.start_fragments);
  }
  if (const auto* span = std::get_if<SpanEvent>(&event)) {
    return span->round > next_round || (span->round == next_round && at_point);
  }
  if (const auto* plan = std::get_if<PlanEvent>(&event)) {
    return plan->round > next_round || (plan->round == next_round && at_point);
  }
  if (const auto* round = std::get_if<RoundEvent>(&event)) return round->round > start.start_round;
  if (const auto* link = std::get_if<LinkEvent>(&event)) return link->round > start.start_round;
  if (const auto* change = std::get_if<SyncChangeEvent>(&event)) return change->round > next_round;
  if (const auto* view = std::get_if<ViewEvent>(&event)) {
    return view->round > next_round || (view->round == next_round && at_point);
  }
  if (const auto* evaluation = std::get_if<EvaluationEvent>(&event)) {
    return evaluation->round > start.start_round;
  }
  return false;
}

// Returns the round whose work a record is part of; 0 if it is none.
int64_t round_of_work(const Event& event) {
  if (const auto* plan = std::get_if<PlanEvent>(&event)) return plan->round;
  if (const auto* step = std::get_if<StepEvent>(&event)) return step->round;
  if (const auto* span = std::get_if<SpanEvent>(&event)) return span->round;
  if (const auto* sync = std::get_if<SyncEvent>(&event)) return sync->round;
  return 0;
}

// Returns where the round begins that the site had not ended when it was lost. A site that joins
// ends its first round with a view, and others with a commit.
std::size_t lost_round_begin(const std::vector<Record>& records, int64_t start_round) {
  int64_t ended_round = 0;
  std::size_t end = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto* round = std::get_if<RoundEvent>(&records[i].event);
    const auto* view = std::get_if<ViewEvent>(&records[i].event);
    if (round == nullptr && view == nullptr) continue;
    ended_round = round != nullptr ? round->round : view->round;
    end = i;
  }
  if (start_round <= ended_round) return records.size();
  const auto lost =
      std::find_if(records.begin() + static_cast<std::ptrdiff_t>(end), records.end(),
                   [&](const Record& record) { return round_of_work(record.event) > ended_round; });
  return static_cast<std::size_t>(lost - records.begin());
}

}  // namespace

EventLog read_event_log(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  EventLog log;
  const auto parsed_bytes = parse_lines(text, file.string(), 1, log.records);
  log.note = unfinished_note(file, text.size() - parsed_bytes);
  return log;
}

// Plans and spans have no step number. They are beyond the point once its last step and sync have
// passed.
std::size_t kept_before(const std::vector<Record>& records, const RunEvent& start) {
  // A run that begins anew in the same folder leaves nothing of the one before.
  if (start.start_round == 0 && start.start_step == 0) return 0;
  bool has_steps = start.start_step == 0;
  bool has_syncs = start.start_fragments == 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (is_beyond(records[i].event, start, has_steps && has_syncs)) return i;
    if (const auto* step = std::get_if<StepEvent>(&records[i].event)) {
      has_steps |= step->round == start.start_round + 1 && step->step == start.start_step;
    } else if (const auto* sync = std::get_if<SyncEvent>(&records[i].event)) {
      has_syncs |=
          sync->round == start.start_round + 1 && sync->fragment + 1 == start.start_fragments;
    }
  }
  return lost_round_begin(records, start.start_round);
}

std::vector<Record> without_abandoned(std::vector<Record> records) {
  std::vector<Record> kept;
  kept.reserve(records.size());
  for (auto& record : records) {
    if (const auto* start = std::get_if<RunEvent>(&record.event)) {
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(kept_before(kept, *start)), kept.end());
    }
    kept.push_back(std::move(record));
  }
  return kept;
}

std::vector<Record> EventFollower::poll() {
  std::vector<Record> records;
  std::error_code error;
  const auto size = std::filesystem::file_size(file_, error);
  if (error == std::errc::no_such_file_or_directory && read_bytes_ == 0) return records;
  // A shorter file was replaced: what was read of it belongs to another run.
  if (error || size < read_bytes_) {
    throw DataError(fmt::format("{}: {}", file_.string(),
                                error ? error.message() : "became shorter while it was followed"));
  }
  if (size == read_bytes_) {
    unfinished_bytes_ = 0;
    return records;
  }
  std::ifstream in(file_, std::ios::binary);
  std::string text(size - read_bytes_, '\0');
  if (!in.seekg(static_cast<std::streamoff>(read_bytes_))) {
    throw DataError(fmt::format("{}: cannot be read", file_.string()));
  }
  // Fewer bytes may come: a restarted site removes the line that its predecessor left unfinished.
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  // A line that is being written is read again when it is whole.
  const auto parsed_bytes = parse_lines(text, file_.string(), read_lines_ + 1, records);
  read_bytes_ += parsed_bytes;
  read_lines_ += static_cast<int64_t>(records.size());
  unfinished_bytes_ = text.size() - parsed_bytes;
  return records;
}

std::string EventFollower::note() const {
  return unfinished_note(file_, unfinished_bytes_);
}

}  // namespace farstep
