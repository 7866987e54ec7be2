// Records of CIFAR-10's binary version for tests.
#pragma once

#include <string>

namespace farstep {

// An image that is one value everywhere.
inline std::string cifar_record(int label, int value) {
  return static_cast<char>(label) + std::string(3072, static_cast<char>(value));
}

}  // namespace farstep
