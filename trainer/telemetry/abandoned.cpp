// A resumed process repeats what its checkpoint did not have, in the same file. Its `run` record
// names the point at which it goes on, and everything beyond that point is dropped from before the
// record. So a report counts each step, second and byte once. The file keeps every complete line.
#include "trainer/telemetry/abandoned.h"

#include <algorithm>

namespace farstep {

namespace {

// What a record says of how far a site is.
enum class Reach {
  kNothing,
  kStep,
  kSync,
  kWork,    // of a round, without a place in it
  kDone,    // a round is committed
  kChange,  // a round is synced in another way
};

struct Progress {
  Reach reach = Reach::kNothing;
  int64_t round = 0;
  int64_t number = 0;  // of the step or the fragment
};

struct ProgressOf {
  Progress operator()(const StepEvent& step) const { return {Reach::kStep, step.round, step.step}; }
  Progress operator()(const SyncEvent& sync) const {
    return {Reach::kSync, sync.round, sync.fragment};
  }
  Progress operator()(const OutlierEvent& outlier) const {
    return {Reach::kSync, outlier.round, outlier.fragment};
  }
  Progress operator()(const SpanEvent& span) const { return {Reach::kWork, span.round}; }
  Progress operator()(const PlanEvent& plan) const { return {Reach::kWork, plan.round}; }
  Progress operator()(const ViewEvent& view) const { return {Reach::kWork, view.round}; }
  Progress operator()(const RoundEvent& round) const { return {Reach::kDone, round.round}; }
  Progress operator()(const LinkEvent& link) const { return {Reach::kDone, link.round}; }
  Progress operator()(const RiseEvent& rise) const { return {Reach::kDone, rise.round}; }
  Progress operator()(const EvaluationEvent& evaluation) const {
    return {Reach::kDone, evaluation.round};
  }
  Progress operator()(const SyncChangeEvent& change) const {
    return {Reach::kChange, change.round};
  }
  Progress operator()(const RunEvent&) const { return {}; }
  Progress operator()(const CheckpointEvent&) const { return {}; }
  Progress operator()(const EndEvent&) const { return {}; }
};

Progress progress_of(const Record& record) {
  return std::visit(ProgressOf(), record.event);
}

// Whether a record is beyond the point of `start`. `at_point`: the record comes after the last step
// and sync before that point.
bool is_beyond(const Progress& progress, const RunEvent& start, bool at_point) {
  const int64_t next_round = start.start_round + 1;
  const bool is_next = progress.round == next_round;
  switch (progress.reach) {
    case Reach::kNothing:
      return false;
    case Reach::kStep:
      return progress.round > next_round || (is_next && progress.number > start.start_step);
    case Reach::kSync:
      return progress.round > next_round || (is_next && progress.number >= start.start_fragments);
    case Reach::kWork:
      return progress.round > next_round || (is_next && at_point);
    case Reach::kDone:
      return progress.round > start.start_round;
    case Reach::kChange:
      return progress.round > next_round;
  }
  return false;
}

// Returns the round whose work a record is part of; 0 if it is none.
int64_t round_of_work(const Progress& progress) {
  const bool is_work = progress.reach == Reach::kStep || progress.reach == Reach::kSync ||
                       progress.reach == Reach::kWork;
  return is_work ? progress.round : 0;
}

// Returns the round that a record ends, if it ends one. A site that joins ends its first round with
// a view, and others with a commit.
std::optional<int64_t> ended_by(const Event& event) {
  if (const auto* round = std::get_if<RoundEvent>(&event)) return round->round;
  if (const auto* view = std::get_if<ViewEvent>(&event)) return view->round;
  return std::nullopt;
}

}  // namespace

std::vector<Record> without_abandoned(std::vector<Record> records) {
  std::vector<Record> kept;
  kept.reserve(records.size());
  for (auto& record : records) {
    if (const auto* start = std::get_if<RunEvent>(&record.event)) {
      KeptSearch search(*start);
      for (const auto& earlier : kept) search.add(earlier);
      kept.resize(search.kept().value_or(0), Record{});
    }
    kept.push_back(std::move(record));
  }
  return kept;
}

bool begins_anew(const RunEvent& start) {
  return start.start_round == 0 && start.start_step == 0;
}

void PastRecords::add(const Record& record) {
  const auto progress = progress_of(record);
  const Place place{progress.round, progress.number};
  switch (progress.reach) {
    case Reach::kNothing:
      break;
    case Reach::kStep:
      step_ = std::max(step_, place);
      break;
    case Reach::kSync:
      sync_ = std::max(sync_, place);
      break;
    case Reach::kWork:
      work_round_ = std::max(work_round_, progress.round);
      break;
    case Reach::kDone:
      done_round_ = std::max(done_round_, progress.round);
      break;
    case Reach::kChange:
      change_round_ = std::max(change_round_, progress.round);
      break;
  }
  if (const auto ended = ended_by(record.event)) {
    ended_round_ = *ended;
    has_lost_ = false;
  } else {
    has_lost_ = has_lost_ || round_of_work(progress) > ended_round_;
  }
}

// If no step is beyond the one at the point, that one is the furthest, or is not there.
bool PastRecords::has_steps(const RunEvent& start) const {
  return start.start_step == 0 || step_ == Place{start.start_round + 1, start.start_step};
}

bool PastRecords::has_syncs(const RunEvent& start) const {
  return start.start_fragments == 0 ||
         sync_ == Place{start.start_round + 1, start.start_fragments - 1};
}

// Plans, spans and views of the round of the point may be before or after it, which is not known
// here: they count as beyond it if the point was reached.
bool PastRecords::are_kept(const RunEvent& start) const {
  const int64_t next_round = start.start_round + 1;
  const bool at_point = has_steps(start) && has_syncs(start);
  return step_ <= Place{next_round, start.start_step} &&
         sync_ < Place{next_round, start.start_fragments} &&
         (at_point ? work_round_ < next_round : work_round_ <= next_round) &&
         done_round_ <= start.start_round && change_round_ <= next_round;
}

KeptSearch::KeptSearch(const RunEvent& start, const PastRecords& past)
    : start_(start),
      are_past_kept_(past.are_kept(start)),
      has_steps_(past.has_steps(start)),
      has_syncs_(past.has_syncs(start)),
      ended_round_(past.ended_round_),
      is_past_lost_(past.has_lost_) {}

// Plans and spans have no step number. They are beyond the point once its last step and sync have
// passed.
void KeptSearch::add(const Record& record) {
  const auto progress = progress_of(record);
  if (!beyond_ && is_beyond(progress, start_, has_steps_ && has_syncs_)) beyond_ = count_;
  const bool is_next = progress.round == start_.start_round + 1;
  if (progress.reach == Reach::kStep) {
    has_steps_ |= is_next && progress.number == start_.start_step;
  } else if (progress.reach == Reach::kSync) {
    has_syncs_ |= is_next && progress.number + 1 == start_.start_fragments;
  }
  if (const auto ended = ended_by(record.event)) {
    ended_round_ = *ended;
    is_past_lost_ = false;
    lost_.reset();
  } else if (!lost_ && !is_past_lost_ && round_of_work(progress) > ended_round_) {
    lost_ = count_;
  }
  ++count_;
}

std::optional<std::size_t> KeptSearch::kept() const {
  if (begins_anew(start_)) return 0;
  if (!are_past_kept_) return std::nullopt;
  if (beyond_) return beyond_;
  if (start_.start_round <= ended_round_) return count_;
  if (is_past_lost_) return std::nullopt;
  return lost_ ? lost_ : count_;
}

}  // namespace farstep
