#include "tests/support/source_folder.h"

namespace farstep {

// The only source that is compiled with the path: every other is the same in every clone, so that
// ccache has it.
std::filesystem::path source_folder() {
  return FARSTEP_SOURCE_FOLDER;
}

}  // namespace farstep
