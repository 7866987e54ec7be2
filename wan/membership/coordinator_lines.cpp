#include "wan/membership/coordinator_lines.h"

#include <exception>

#include "trainer/base/error.h"

namespace farstep::wan {

CoordinatorLines::CoordinatorLines(const std::vector<CoordinatorEndpoint>& endpoints,
                                   const Deadlines& deadlines) {
  FARSTEP_CHECK(!endpoints.empty(), "a site without a coordinator");
  for (const auto& [endpoint, shown] : endpoints) {
    sockets_.push_back(
        std::make_unique<ControlSocket>(ControlSocket::Role::kSite, endpoint, deadlines));
    names_.push_back(shown.empty() ? endpoint : shown);
    registrations_.emplace_back();
  }
}

void CoordinatorLines::wait(double timeout_seconds) {
  ControlSocket::wait_for_any(sockets_, timeout_seconds);
}

std::optional<CoordinatorLines::Received> CoordinatorLines::receive() {
  for (std::size_t line = 0; line < sockets_.size(); ++line) {
    const auto received = sockets_[line]->receive();
    if (!received) continue;
    const auto said = [&](const std::exception& error) {
      return fmt::format("coordinator at {}: {}", names_[line], error.what());
    };
    try {
      Received message{line, decode_coordinator_message(received->frames.front())};
      if (answers_registration(message.message)) registrations_[line].note_answer();
      return message;
    } catch (const DataError& error) {
      throw DataError(said(error));
    } catch (const ConfigError& error) {
      throw ConfigError(said(error));
    }
  }
  return std::nullopt;
}

std::size_t CoordinatorLines::send(std::size_t line, const SiteMessage& message) {
  const auto frame = encode(message);
  sockets_[line]->send({frame});
  return frame.size();
}

std::size_t CoordinatorLines::send_to_all(const SiteMessage& message) {
  const auto frame = encode(message);
  for (const auto& socket : sockets_) socket->send({frame});
  return frame.size();
}

bool CoordinatorLines::take_loss(std::size_t line) {
  const bool has_lost = sockets_[line]->take_loss();
  if (has_lost) registrations_[line].note_loss();
  return has_lost;
}

void CoordinatorLines::register_at_all(const RegisterMessage& message, bool is_new,
                                       double now_seconds, double heartbeat_seconds,
                                       std::optional<std::size_t> but) {
  const auto frame = encode(message);
  for (std::size_t line = 0; line < sockets_.size(); ++line) {
    auto& repetition = registrations_[line];
    if (line == but) continue;
    if (is_new) repetition.note_loss();
    const bool waits = repetition.is_sent() && !sockets_[line]->is_connected();
    if (waits || !repetition.is_paced(now_seconds)) continue;
    sockets_[line]->send({frame});
    repetition.note_copy(now_seconds, frame.size(), heartbeat_seconds);
  }
}

}  // namespace farstep::wan
