// A member while its coordinator is away, and when it comes back.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "trainer/base/system/file.h"
#include "trainer/config/config_file.h"
#include "wan/membership/member.h"

namespace farstep::wan {

namespace {

// What a site keeps of the coordinators that it has known.
struct TermFile {
  int64_t term = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("term", term, "the newest", required(in_range(0, kMostTerm)));
  }
};

}  // namespace

// Without its term the site may join; it only knows less of the coordinators before.
void Member::load_term() {
  if (term_file_.empty() || !std::filesystem::exists(term_file_)) return;
  try {
    term_ = read_json<TermFile>(load_json(term_file_), term_file_.string()).term;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig && error.kind() != ErrorKind::kData) throw;
    set_aside(term_file_);
    spdlog::warn(
        "{}; it is {}.damaged now: this site may hear a coordinator that another one has replaced",
        error.what(), term_file_.filename().string());
  }
  asked_term_ = kept_term_ = term_;
}

void Member::keep_term() {
  const std::lock_guard lock(mutex_);
  if (term_ == asked_term_) return;
  asked_term_ = term_;
  if (term_file_.empty()) return note_kept_term(term_);
  submit([this, term = term_] {
    write_term(term);
    const std::lock_guard lock(mutex_);
    note_kept_term(term);
  });
}

// A site that cannot write it can still train; it only knows less after its own restart.
void Member::write_term(int64_t term) const {
  try {
    write_file_durably(term_file_, to_json(TermFile{term}).dump() + "\n");
  } catch (const DataError& error) {
    spdlog::warn("the coordinator's term is not saved: {}", error.what());
  }
}

bool Member::waits_for_term(const Request& request) const {
  return kept_term_ != term_ && is_registration(request);
}

// A registration that went out before it was written was no promise.
void Member::note_kept_term(int64_t term) {
  kept_term_ = std::max(kept_term_, term);
  for (auto* request : requests_) {
    if (is_registration(*request)) request->repetition.note_loss();
  }
  lines_.wake();
}

// An older coordinator that still runs must not tell this site what only the newest one may. Before
// the welcome any of them may turn out to serve the run, and a refusal shows what to mend.
bool Member::is_heard(const CoordinatorLines::Received& received) {
  const auto term = std::visit(
      [](const auto& content) -> std::optional<int64_t> {
        if constexpr (requires { content.term; }) return content.term;
        return std::nullopt;
      },
      received.message);
  const bool is_refusal = std::holds_alternative<RefusedMessage>(received.message);
  if (term && *term < term_ && (welcome_ || !is_refusal)) {
    if (refused_term_ != *term) {
      spdlog::warn("coordinator at {} is of term {}, and a newer one is of term {}: not heard",
                   lines_.name(received.line), *term, term_);
    }
    refused_term_ = *term;
    return false;
  }
  if (term && *term > term_) follow(received.line, *term);
  const bool is_of_current = received.line == current_;
  if (welcome_ || is_of_current) return is_of_current;
  if (is_coordinator_silent() || received.line < current_ ||
      std::holds_alternative<Welcome>(received.message)) {
    current_ = received.line;
  }
  const auto* refusal = std::get_if<RefusedMessage>(&received.message);
  return refusal == nullptr || !refusal->is_temporary || received.line == current_;
}

void Member::follow(std::size_t line, int64_t term) {
  if (welcome_ && line == current_) {
    spdlog::info("coordinator at {} was restarted: term {}", lines_.name(line), term);
  } else if (welcome_) {
    spdlog::warn("this site takes part at the coordinator at {} from now on: term {}",
                 lines_.name(line), term);
  }
  term_ = term;
  back_seconds_ = clock_.now_seconds();
  if (line == current_) return;
  current_ = line;
  // How much of the records it has, its own answer says.
  sent_records_ = {};
  pieces_.clear();
  for (auto* request : requests_) request->repetition.note_loss();
}

void Member::return_to_run(const std::string& reason) {
  if (returning_ || is_leaving_ || failure_) return;
  spdlog::warn("coordinator at {} {}; the site registers again", coordinator_locked(), reason);
  returning_.emplace(Request{.message = registration_of_member()});
  requests_.push_back(&*returning_);
}

// What it knows at this moment: of a silent coordinator, a commit may come late.
RegisterMessage Member::registration_of_member() const {
  RegisterMessage message = registration_;
  message.generation = generation_locked();
  if (committed_) {
    message.committed_round = committed_->round;
    message.committed_fragment = committed_->fragment;
  }
  const auto& members = view_ ? view_->sites : welcome_->sites;
  const bool is_member =
      !welcome_->is_newcomer || (view_ && std::ranges::count(members, site_) > 0);
  if (is_member) {
    auto& memory = message.memory.emplace(
        RunMemory{.members = members, .first_sites = welcome_->first_sites, .values = {}});
    for (const auto& [key, value] : start_values_) memory.values.push_back({key, to_hex(value)});
  }
  return message;
}

// The loss of the coordinator, whatever the refusal's reason: a site saves its state on a loss
// alone. If its config is at fault, its next start says so.
void Member::end_return(bool is_known) {
  if (!returning_ || !(returning_->answer || is_known)) return;
  const auto answer = std::move(returning_->answer);
  std::erase(requests_, &*returning_);
  returning_.reset();
  if (!answer) return;
  if (const auto* refusal = std::get_if<RefusedMessage>(&*answer)) {
    fail(ErrorKind::kPeer, "",
         fmt::format("coordinator at {} does not count site {} as a member: {}",
                     coordinator_locked(), site_, refusal->message),
         refusal->is_left_behind);
  }
}

double Member::silence_seconds() const {
  return clock_.now_seconds() - heard_seconds_;
}

bool Member::is_coordinator_silent() const {
  return silence_seconds() > deadlines_.lost_after_seconds;
}

bool Member::was_away_since(double seconds) const {
  return is_coordinator_silent() || back_seconds_ >= seconds;
}

}  // namespace farstep::wan
