// The state is small, so each change replaces the whole file, durably. A lock file beside it keeps
// a second coordinator away: two that go on with one run would serve two truths.
#include "wan/membership/journal.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/config/strict_json.h"

namespace farstep::wan {

namespace {

// The first line: this and the checksum of the rest. The number is the version of the format.
constexpr std::string_view kTitle = "farstep coordinator journal 1 ";
// A disk that is full again and again within it has been full all the time, as a reader sees it.
constexpr double kCalmSeconds = 60;

struct Content {
  std::string run;
  RosterState state;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run", run, "identity of what the coordinator serves", kRequired);
    visit("state", state, "of its roster", kRequired);
  }
};

std::string checksum_of(std::string_view text) {
  return checksum_text(checksum(std::as_bytes(std::span(text))));
}

std::string identity_of(const ServedRun& run) {
  const Json all{{"config", run.config},
                 {"sites", run.sites},
                 {"fragments", run.fragments},
                 {"min_sites", run.least_sites()},
                 {"max_sites", run.most_sites()}};
  return checksum_of(all.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string first_line(std::string_view body) {
  return std::string(kTitle) + checksum_of(body) + "\n";
}

// What a coordinator without its journal goes on by.
constexpr std::string_view kWithoutIt =
    "sites that still run know what is needed, others go on from their checkpoints with --resume";

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw DataError(fmt::format("{}: {}; if the run shall not go on from it, delete it: {}", file,
                              what, kWithoutIt));
}

}  // namespace

std::string journal_text(const RosterState& state, const ServedRun& run) {
  const auto json = to_json(Content{.run = identity_of(run), .state = state});
  const auto body = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return checked_journal(body);
}

std::string checked_journal(std::string_view body) {
  return first_line(body).append(body);
}

RosterState journal_state(std::string_view text, const ServedRun& run, const std::string& file) {
  const auto end = text.find('\n');
  const auto body = end == std::string_view::npos ? "" : text.substr(end + 1);
  if (!text.starts_with(kTitle)) refuse(file, "it is no journal of this version's coordinator");
  if (text.substr(0, text.size() - body.size()) != first_line(body)) {
    throw DamagedJournal(fmt::format("{}: the coordinator's journal is damaged", file));
  }
  // A checksum is no signature, so the content may be wrong all the same.
  const auto or_damaged = [&](auto&& call) {
    try {
      return call();
    } catch (const DataError& error) {
      throw DamagedJournal(fmt::format("{}: {}", file, error.what()));
    } catch (const ConfigError& error) {
      throw DamagedJournal(fmt::format("{}: {}", file, error.what()));
    }
  };
  const auto content =
      or_damaged([&] { return read_untrusted<Content>(body, "the coordinator's journal"); });
  if (content.run != identity_of(run)) {
    refuse(file, "the journal belongs to another run, or the run file was changed since");
  }
  or_damaged([&] { content.state.require_fits(run); });
  return content.state;
}

Journal::Journal(std::filesystem::path file, ServedRun run)
    : file_(std::move(file)), run_(std::move(run)) {
  if (file_.has_parent_path()) make_folder(file_.parent_path());
  // The journal itself is replaced at each write, and a lock with it.
  const auto lock_file = file_.string() + ".lock";
  lock_ = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    throw DataError(fmt::format("{}: cannot be opened: {}", lock_file, std::strerror(errno)));
  }
  try {
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      throw PeerError("", fmt::format("{}: another coordinator uses this journal; end that one "
                                      "first",
                                      file_.string()));
    }
    if (std::filesystem::exists(file_)) {
      start_ = read();
      start_.term = run_.term_after(start_.term);
    }
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

Journal::~Journal() {
  ::close(lock_);
}

RosterState Journal::read() {
  written_ = read_file(file_);
  try {
    return journal_state(written_, run_, file_.string());
  } catch (const DamagedJournal& error) {
    set_aside(file_);
    written_.clear();
    spdlog::warn("{}; it is {}.damaged now, and the coordinator begins without it: {}",
                 error.what(), file_.filename().string(), kWithoutIt);
    return {};
  }
}

void Journal::write(const RosterState& state) {
  auto text = journal_text(state, run_);
  if (text == written_) return;
  written_.clear();  // unknown, if this fails
  write_file_durably(file_, text);
  written_ = std::move(text);
}

void Journal::remove() {
  written_.clear();
  remove_file_durably(file_);
}

// The old journal is removed each time, so the next write may find the room that it had.
void KeptJournal::save(const RosterState& state) {
  try {
    journal_.write(state);
  } catch (const DataError& error) {
    const bool is_news = !failed_seconds_;
    failed_seconds_ = clock_.now_seconds();
    if (is_news) {
      spdlog::error("coordinator: {}; until it can be written, the run ends with this process",
                    error.what());
    }
    remove_and_tell(is_news);
    return;
  }
  if (!failed_seconds_ || clock_.now_seconds() - *failed_seconds_ < kCalmSeconds) return;
  spdlog::info("coordinator: the journal is written again, without a fault for {:.0f} s",
               kCalmSeconds);
  failed_seconds_.reset();
}

void KeptJournal::remove_and_tell(bool tells_fault) {
  try {
    journal_.remove();
  } catch (const DataError& error) {
    if (tells_fault) spdlog::error("coordinator: {}; delete it, as it is old", error.what());
  }
}

}  // namespace farstep::wan
