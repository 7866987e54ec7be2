// wan_lab: a lab in a folder, as scripts/wan_lab describes it there.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "trainer/base/error.h"
#include "trainer/base/system/log.h"
#include "trainer/config/config_file.h"
#include "wan/lab/lab.h"

int main(int argc, char** argv) {
  using namespace farstep;
  try {
    set_up_log("");
    if (argc < 2) {
      throw ConfigError(
          fmt::format("usage: wan_lab FOLDER [COMMAND...], where FOLDER/{} describes the lab; "
                      "scripts/wan_lab writes it. Its fields:\n{}",
                      wan::kLabSpecFile, help_text(list_fields<wan::LabSpec>())));
    }
    const auto folder = std::filesystem::absolute(argv[1]);
    const auto file = folder / wan::kLabSpecFile;
    return wan::run_lab({.spec = read_json<wan::LabSpec>(load_json(file), file.string()),
                         .folder = folder,
                         .command = {argv + 2, argv + argc}});
  } catch (const Error& error) {
    spdlog::error("{}", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    spdlog::error("internal error: {}", error.what());
    return static_cast<int>(ErrorKind::kInternal);
  }
}
