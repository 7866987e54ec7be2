#include "tests/support/temporary_folder.h"

#include <cstdlib>

#include "trainer/base/error.h"

namespace farstep {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "farstep-test-XXXXXX").string();
  FARSTEP_CHECK(::mkdtemp(pattern.data()) != nullptr, "no temporary folder at {}", pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // a destructor has nobody to tell
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace farstep
