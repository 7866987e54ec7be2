// Processes that stand for the hosts of a network, with one store between them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "wan/transport/store.h"

namespace farstep::wan {

using Host = std::function<std::string(int rank, Store& store)>;

// Runs host(0, store) .. host(n - 1, store), each in a forked process; `store` is one and the same,
// and its get() waits `store_seconds` at most. Returns what each said: its result, the text of what
// it threw, or "died". `meanwhile` is called in this process, with the hosts' process ids, while
// they run. To be called before this process starts a thread.
std::vector<std::string> run_hosts(
    int n, const Host& host, double store_seconds,
    const std::function<void(Store& store, const std::vector<pid_t>& pids)>& meanwhile = {});

}  // namespace farstep::wan
