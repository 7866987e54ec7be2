#include "trainer/account/site_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/telemetry/event_log.h"

namespace farstep {

SiteReport::SiteReport(std::string name, std::filesystem::path file, std::size_t most_recent)
    : SiteFigures(name),
      file_(std::move(file)),
      most_recent_(most_recent),
      folded_(std::move(name)) {}

void SiteReport::add(Record record) {
  run_seconds_.add(record);
  if (const auto* start = std::get_if<RunEvent>(&record.event)) drop_abandoned(*start);
  append(std::move(record), read_++);
  set_run_seconds(run_seconds_.seconds());
}

void SiteReport::drop_abandoned(const RunEvent& start) {
  KeptSearch search(start, past_);
  for (const auto& record : recent_) search.add(record);
  const auto kept = search.kept();
  if (begins_anew(start)) {
    static_cast<SiteFigures&>(*this) = folded_ = SiteFigures(site);
    recent_.clear();
    past_ = {};
    has_folded_ = false;
    kept_.clear();
  } else if (!kept) {
    count_anew(start);
  } else if (*kept < recent_.size()) {
    keep_recent(*kept);
  }
}

// Sums of seconds cannot be subtracted from to the last digit, so the figures are counted anew from
// what is left.
void SiteReport::keep_recent(std::size_t kept) {
  auto dropped = static_cast<int64_t>(recent_.size() - kept);
  while (dropped > 0) {
    auto& last = kept_.back();
    const auto taken = std::min(dropped, last.end - last.begin);
    last.end -= taken;
    dropped -= taken;
    if (last.begin == last.end) kept_.pop_back();
  }
  recent_.resize(kept, Record{});
  static_cast<SiteFigures&>(*this) = folded_;
  for (const auto& record : recent_) count(record);
}

// Counts while it searches, as reading takes long. The round of a loss shows at the end only; then
// all is read once more.
void SiteReport::count_anew(const RunEvent& start) {
  const auto empty = [&] {
    SiteReport report(site, file_, most_recent_);
    report.read_ = read_;
    report.run_seconds_ = run_seconds_;
    return report;
  };
  auto anew = empty();
  KeptSearch search(start);
  std::size_t counted = 0;
  visit_file([&](const Record& record, int64_t number) {
    search.add(record);
    if (search.has_passed()) return false;
    anew.append(record, number);
    ++counted;
    return true;
  });
  auto left = search.kept().value_or(0);
  if (left < counted) {
    anew = empty();
    visit_file([&](const Record& record, int64_t number) {
      if (left == 0) return false;
      --left;
      anew.append(record, number);
      return true;
    });
  }
  *this = std::move(anew);
}

void SiteReport::append(Record record, int64_t number) {
  if (!file_.empty() && recent_.size() >= most_recent_) fold();
  count(record);
  recent_.push_back(std::move(record));
  if (!kept_.empty() && kept_.back().end == number) {
    ++kept_.back().end;
  } else {
    kept_.push_back({number, number + 1});
  }
}

// Half of them at once, as moving the others to the front takes time.
void SiteReport::fold() {
  const std::size_t folded = most_recent_ / 2;
  for (std::size_t i = 0; i < folded; ++i) {
    folded_.count(recent_[i]);
    past_.add(recent_[i]);
  }
  recent_.erase(recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(folded));
  has_folded_ = true;
}

void SiteReport::visit_records(const std::function<void(const Record&)>& visitor) const {
  if (!has_folded_) {
    for (const auto& record : recent_) visitor(record);
    return;
  }
  visit_file([&](const Record& record, int64_t) {
    visitor(record);
    return true;
  });
}

// Calls `visitor` with each record that counts and its number, until it returns false.
void SiteReport::visit_file(
    const std::function<bool(const Record&, int64_t number)>& visitor) const {
  EventFollower file(file_);
  auto range = kept_.begin();
  int64_t number = 0;
  for (auto records = file.poll_some(); range != kept_.end() && !records.empty();
       records = file.poll_some()) {
    for (const auto& record : records) {
      if (range->begin <= number && !visitor(record, number)) return;
      if (++number == range->end && ++range == kept_.end()) return;
    }
  }
  if (range != kept_.end()) {
    throw DataError(fmt::format("{}: has fewer records than before", file_.string()));
  }
}

}  // namespace farstep
