#include "trainer/account/run_follower.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/telemetry/recorder.h"

namespace farstep {

namespace fs = std::filesystem;

// A folder with an event file is one site's; otherwise its subfolders are sites. Sites of one
// machine share an output folder, and a folder that was fetched has one site.
std::vector<fs::path> find_event_files(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / kEventFile, error)) return {folder / kEventFile};
  std::vector<fs::path> files;
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

bool RunFollower::poll() {
  find_new_files();
  bool has_news = false;
  std::vector<std::string> notes;
  for (auto& file : files_) {
    for (auto records = file.events.poll_some(); !records.empty();
         records = file.events.poll_some()) {
      for (auto& record : records) add(file, std::move(record));
      has_news = true;
    }
    if (auto note = file.events.note(); !note.empty()) notes.push_back(std::move(note));
  }
  if (notes != notes_ && !report_.sites.empty()) has_news = true;
  notes_ = std::move(notes);
  if (has_news) report_.settle(notes_);
  return has_news;
}

// A run's folder appears when its first site begins.
void RunFollower::find_new_files() {
  for (const auto& folder : folders_) {
    std::error_code error;
    if (!fs::exists(folder, error) && !error) continue;
    for (const auto& path : find_event_files(folder)) {
      if (std::ranges::find(files_, path, &File::path) != files_.end()) continue;
      files_.push_back({path, EventFollower(path), ""});
    }
  }
  // Notes come in their order, whichever was there first.
  std::ranges::sort(files_, {}, &File::path);
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
  file.site = record.site;
  if (std::ranges::find(sites, file.site, &SiteReport::site) != sites.end()) {
    throw DataError(fmt::format("two event files are of site {}", file.site));
  }
  sites.emplace_back(file.site, file.path);
  return sites.back();
}

}  // namespace farstep
