#include "wan/transport/transport.h"

#include "trainer/base/error.h"

namespace farstep {

uint64_t make_tag(uint64_t generation, uint64_t round, uint64_t fragment, uint64_t phase) {
  FARSTEP_CHECK(round < (1u << 24) && fragment < (1u << 16) && phase < (1u << 8),
                "round {}, fragment {}, phase {} do not fit into a tag", round, fragment, phase);
  return (generation & 0xffff) << 48 | round << 24 | fragment << 8 | phase;
}

}  // namespace farstep
