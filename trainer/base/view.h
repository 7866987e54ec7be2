// The membership of a run at one generation, as one site sees it.
//
// A value: it is handed down to whatever works for this membership, and nothing that was made from
// it (places, shares, connections) is used with another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace farstep {

struct View {
  int64_t generation = 0;
  std::vector<std::string> members;  // names of the sites; a site's place is its index here
  std::size_t self = 0;              // this site's place

  std::size_t size() const { return members.size(); }
  const std::string& own_name() const { return members.at(self); }
  bool operator==(const View&) const = default;
};

}  // namespace farstep
