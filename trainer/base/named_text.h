// A small file as a whole: its name in a folder, and what it contains.
#pragma once

#include <string>

namespace farstep {

struct NamedText {
  std::string name, content;
};

}  // namespace farstep
