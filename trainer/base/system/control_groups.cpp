#include "trainer/base/system/control_groups.h"

#include <fstream>
#include <string>

namespace farstep {

namespace {

namespace fs = std::filesystem;

// Whether a list as "cpu,cpuacct" has the name.
bool lists(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const auto comma = names.find(',');
    if (names.substr(0, comma) == name) return true;
    names = comma == std::string_view::npos ? "" : names.substr(comma + 1);
  }
  return false;
}

void add_upwards(const fs::path& top, fs::path group, std::vector<fs::path>& folders) {
  for (; !group.empty(); group = group.parent_path()) folders.push_back(top / group);
  folders.push_back(top);
}

}  // namespace

// A line is ID:CONTROLLERS:/GROUP. Version 2 has ID 0 and no controllers, since one hierarchy has
// them all; version 1 mounts a hierarchy for each list of controllers, under the list's name.
std::vector<fs::path> control_groups(std::string_view controller, const fs::path& root) {
  std::vector<fs::path> folders;
  const auto top = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  std::string id, names, group;
  while (std::getline(file, id, ':') && std::getline(file, names, ':') &&
         std::getline(file, group)) {
    const auto own = fs::path(group).relative_path();
    if (id == "0") {
      add_upwards(top, own, folders);
    } else if (lists(names, controller)) {
      add_upwards(top / names, own, folders);
    }
  }
  return folders;
}

}  // namespace farstep
