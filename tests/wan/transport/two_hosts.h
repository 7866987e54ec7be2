// Two processes in network namespaces of their own, joined by a cable: two machines in one test.
#pragma once

#include <functional>
#include <string>

#include "wan/transport/store.h"

namespace farstep {

// Why two hosts cannot be had here (they need root and iproute2), or "".
std::string two_hosts_obstacle();

// Runs host(0, store) and host(1, store) in forked processes, with addresses 10.77.0.1 and
// 10.77.0.2, fd77::1 and fd77::2 on interface "cable" beside the loopback; `store` is one and the
// same. Each returns what it has to say, or throws; the result is "0: <text of host 0>\n1: <text of
// host 1>\n". The namespaces and the cable end with the processes. To be called before the test
// starts a thread.
std::string run_two_hosts(const std::function<std::string(int rank, Store& store)>& host);

}  // namespace farstep
