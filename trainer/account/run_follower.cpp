#include "trainer/account/run_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "trainer/base/error.h"
#include "trainer/telemetry/recorder.h"

namespace farstep {

namespace fs = std::filesystem;

namespace {

// Returns those of FOLDER/*/events.jsonl that are there, sorted. Throws DataError.
std::vector<fs::path> files_in_subfolders(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  // A range-based loop would throw what the file system says in the middle of the list.
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;  // a folder that cannot be read holds no site
    const auto file = entry->path() / kEventFile;
    if (fs::exists(file, ignored)) files.push_back(file);
  }
  if (error) throw DataError(fmt::format("{}: {}", folder.string(), error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

// Returns the first line; empty without a whole one.
std::string first_line(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string line;
  return std::getline(stream, line) && !stream.eof() ? line : "";
}

// Adds the copies in the folders of these sites, but of sites whose own file is there, by the name
// of its folder or by its first line: a folder that was fetched may have any name, and a damaged
// file any line. Of two copies the longer one is newer.
void add_copies(std::vector<fs::path>& files) {
  std::set<fs::path> names;
  for (const auto& file : files) names.insert(file.parent_path().filename());
  std::map<std::string, fs::path> copies;  // by their first lines
  for (const auto& file : files) {
    std::error_code error;
    const auto folder = file.parent_path() / kCopiesFolder;
    if (!fs::is_directory(folder, error)) continue;
    for (const auto& copy : files_in_subfolders(folder)) {
      const auto line = first_line(copy);
      if (line.empty() || names.contains(copy.parent_path().filename())) continue;
      const auto [known, is_new] = copies.try_emplace(line, copy);
      if (!is_new && fs::file_size(copy, error) > fs::file_size(known->second, error)) {
        known->second = copy;
      }
    }
  }
  if (copies.empty()) return;
  for (const auto& file : files) copies.erase(first_line(file));
  for (const auto& [line, copy] : copies) files.push_back(copy);
}

}  // namespace

// A folder with an event file is one site's; otherwise its subfolders are sites. Sites of one
// machine share an output folder, and a folder that was fetched has one site.
std::vector<fs::path> find_event_files(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  if (fs::exists(folder / kEventFile, error)) {
    files = {folder / kEventFile};
  } else {
    files = files_in_subfolders(folder);
  }
  add_copies(files);
  return files;
}

bool RunFollower::poll() {
  auto unreadable = find_new_files();
  for (auto& file : files_) read(file);
  leave_out_other_runs();
  std::vector<std::string> notes;
  bool has_news = false;
  for (const auto& file : files_) {
    if (!file.reason.empty()) {
      const auto folder = file.path.parent_path().filename().string();
      unreadable.push_back({file.path, file.site.empty() ? folder : file.site, file.reason});
      continue;
    }
    has_news |= file.has_news;
    if (auto note = file.events.note(); !note.empty()) notes.push_back(std::move(note));
  }
  if (notes != notes_ && !report_.sites.empty()) has_news = true;
  if (unreadable != report_.unreadable) has_news = true;
  notes_ = std::move(notes);
  report_.unreadable = std::move(unreadable);
  if (has_news && !report_.sites.empty()) report_.settle(notes_);
  return has_news;
}

void RunFollower::retry() {
  for (auto& file : files_) {
    if (!file.reason.empty()) file = {.path = file.path, .events = EventFollower(file.path)};
  }
}

// A run's folder appears when its first site begins.
std::vector<UnreadableFile> RunFollower::find_new_files() {
  std::vector<UnreadableFile> unreadable;
  std::vector<fs::path> found;
  for (const auto& folder : folders_) {
    std::error_code error;
    if (!fs::exists(folder, error) && !error) continue;
    try {
      std::ranges::copy(find_event_files(folder), std::back_inserter(found));
    } catch (const DataError& failure) {
      unreadable.push_back({folder, "", failure.what()});
    }
  }
  // A copy may be known of whose site the own file has come since, or a newer copy: all is counted
  // anew then, since a site has one file.
  const bool is_replaced =
      unreadable.empty() && std::ranges::any_of(files_, [&](const File& file) {
        std::error_code error;
        return std::ranges::find(found, file.path) == found.end() && fs::exists(file.path, error);
      });
  if (is_replaced) {
    files_.clear();
    report_ = {};
  }
  for (const auto& path : found) {
    if (std::ranges::find(files_, path, &File::path) != files_.end()) continue;
    files_.push_back({.path = path, .events = EventFollower(path)});
  }
  // Notes come in their order, whichever was there first.
  std::ranges::sort(files_, {}, &File::path);
  return unreadable;
}

void RunFollower::read(File& file) {
  file.has_news = false;
  if (!file.reason.empty()) return;
  try {
    for (auto records = file.events.poll_some(); !records.empty();
         records = file.events.poll_some()) {
      for (auto& record : records) add(file, std::move(record));
      file.has_news = true;
    }
  } catch (const DataError& error) {
    leave_out(file, error.what());
  }
}

void RunFollower::add(File& file, Record record) {
  auto& site = site_of(file, record);
  if (record.site != site.site) {
    throw DataError(
        fmt::format("{}: holds records of {} and {}", file.path.string(), site.site, record.site));
  }
  site.add(std::move(record));
}

// Sites change their places in the report, so a file knows its site by name.
SiteReport& RunFollower::site_of(File& file, const Record& record) {
  auto& sites = report_.sites;
  if (!file.site.empty()) return *std::ranges::find(sites, file.site, &SiteReport::site);
  if (!std::holds_alternative<RunEvent>(record.event)) {
    throw DataError(fmt::format("{}: does not begin with a \"run\" event", file.path.string()));
  }
  if (std::ranges::find(sites, record.site, &SiteReport::site) != sites.end()) {
    throw DataError(
        fmt::format("{}: is of site {}, as another file is", file.path.string(), record.site));
  }
  file.site = record.site;
  sites.emplace_back(file.site, file.path);
  return sites.back();
}

// Half of a site's records would give wrong figures, so all of them go.
void RunFollower::leave_out(File& file, const std::string& reason) {
  file.reason = reason;
  // Without a record of its own it has no site here.
  if (file.site.empty()) return;
  std::erase_if(report_.sites, [&](const SiteReport& site) { return site.site == file.site; });
}

// A run that is over may have left files in the folder of the next one.
void RunFollower::leave_out_other_runs() {
  if (report_.sites.empty()) return;
  const auto newest = std::ranges::max_element(report_.sites, {}, &SiteReport::last_seen);
  const auto site = newest->site, run = newest->run.run;
  for (auto& file : files_) {
    if (file.site.empty() || !file.reason.empty()) continue;
    const auto& own = *std::ranges::find(report_.sites, file.site, &SiteReport::site);
    if (own.run.run == run) continue;
    leave_out(file, fmt::format("{}: belongs to run {}, and the newest record, of {}, to run {}: "
                                "one folder is for one run",
                                file.path.string(), own.run.run, site, run));
  }
}

}  // namespace farstep
