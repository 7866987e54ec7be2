#include "trainer/commands/torch_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// OpenMP's threads meet several times a layer, and one that waits turns in a loop of 300,000 rounds
// before it sleeps, which is milliseconds. On a busy machine it so takes the core from the thread
// that it waits for. 1,000 rounds are about as long as a sleeping thread takes to wake.
void bound_waiting_of_openmp() {
  constexpr int kKeepTheUsers = 0;
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) {
    ::setenv("GOMP_SPINCOUNT", "1000", kKeepTheUsers);
  }
}

}  // namespace

int become_torch_program(std::string_view name, const Arguments& arguments) {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "farstep-torch";
  std::vector<std::string> words{"farstep"};
  if (arguments.only_check) words.emplace_back("--check-arguments");
  words.emplace_back(name);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  bound_waiting_of_openmp();
  ::execv(program.c_str(), pointers.data());
  if (errno == ENOENT) {
    throw ConfigError(fmt::format(
        "farstep {}: needs LibTorch, and this installation has none: there is no {}. Install "
        "Farstep with LibTorch; coordinator, plan, report and other commands run without",
        name, program.string()));
  }
  throw ConfigError(
      fmt::format("farstep {}: {}: {}", name, program.string(), std::strerror(errno)));
}

}  // namespace farstep
