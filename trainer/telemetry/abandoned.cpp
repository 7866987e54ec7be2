// A resumed process repeats what its checkpoint did not have, in the same file. Its `run` record
// names the point at which it goes on, and everything beyond that point is dropped from before the
// record. So a report counts each step, second and byte once. The file keeps every complete line.
#include "trainer/telemetry/abandoned.h"

#include <algorithm>

namespace farstep {

namespace {

// Whether a record is beyond the point of `start`. `at_point`: the record comes after the last step
// and sync before that point.
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
  const auto& event = record.event;
  if (const auto* step = std::get_if<StepEvent>(&event)) {
    step_ = std::max(step_, Place{step->round, step->step});
  } else if (const auto* sync = std::get_if<SyncEvent>(&event)) {
    sync_ = std::max(sync_, Place{sync->round, sync->fragment});
  } else if (const auto* span = std::get_if<SpanEvent>(&event)) {
    work_round_ = std::max(work_round_, span->round);
  } else if (const auto* plan = std::get_if<PlanEvent>(&event)) {
    work_round_ = std::max(work_round_, plan->round);
  } else if (const auto* view = std::get_if<ViewEvent>(&event)) {
    work_round_ = std::max(work_round_, view->round);
  } else if (const auto* round = std::get_if<RoundEvent>(&event)) {
    done_round_ = std::max(done_round_, round->round);
  } else if (const auto* link = std::get_if<LinkEvent>(&event)) {
    done_round_ = std::max(done_round_, link->round);
  } else if (const auto* evaluation = std::get_if<EvaluationEvent>(&event)) {
    done_round_ = std::max(done_round_, evaluation->round);
  } else if (const auto* change = std::get_if<SyncChangeEvent>(&event)) {
    change_round_ = std::max(change_round_, change->round);
  }
  if (const auto ended = ended_by(event)) {
    ended_round_ = *ended;
    has_lost_ = false;
  } else {
    has_lost_ = has_lost_ || round_of_work(event) > ended_round_;
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
  const auto& event = record.event;
  if (!beyond_ && is_beyond(event, start_, has_steps_ && has_syncs_)) beyond_ = count_;
  if (const auto* step = std::get_if<StepEvent>(&event)) {
    has_steps_ |= step->round == start_.start_round + 1 && step->step == start_.start_step;
  } else if (const auto* sync = std::get_if<SyncEvent>(&event)) {
    has_syncs_ |=
        sync->round == start_.start_round + 1 && sync->fragment + 1 == start_.start_fragments;
  }
  if (const auto ended = ended_by(event)) {
    ended_round_ = *ended;
    is_past_lost_ = false;
    lost_.reset();
  } else if (!lost_ && !is_past_lost_ && round_of_work(event) > ended_round_) {
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
