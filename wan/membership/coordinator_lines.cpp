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
      return Received{line, decode_coordinator_message(received->frames.front())};
    } catch (const DataError& error) {
      throw DataError(said(error));
    } catch (const ConfigError& error) {
      throw ConfigError(said(error));
    }
  }
  return std::nullopt;
}

void CoordinatorLines::send(std::size_t line, const SiteMessage& message) {
  sockets_[line]->send({encode(message)});
}

void CoordinatorLines::send_to_all(const SiteMessage& message) {
  const auto frame = encode(message);
  for (const auto& socket : sockets_) socket->send({frame});
}

}  // namespace farstep::wan
