// Raw HTTP over a socket, so that tests can send what no client library would.
#pragma once

#include <string>

#include "wan/sockets/tcp.h"

namespace farstep {

// Sends `text` to the server and returns all that comes back until it closes the connection, or
// until `enough` is in it. Throws TcpError after ten seconds without either.
std::string ask(const wan::SocketAddress& server, const std::string& text,
                const std::string& enough = "\n\n\n");

// The same in two parts: a connection that sends, and one read from it.
wan::Socket send_to(const wan::SocketAddress& server, const std::string& text);
std::string receive_from(const wan::Socket& socket, const std::string& enough);

// Returns the answer to a GET of `path` by a client that names this machine, with `headers` (each
// ended by "\r\n").
std::string get(const wan::SocketAddress& server, const std::string& path,
                const std::string& headers = "");

// Returns what follows an answer's header.
std::string body_of(const std::string& answer);

}  // namespace farstep
