// The batch of a step on its way from the master to another site: a message for each of its parts,
// beside the exchange. Both sides know its size from the plan, and its parts from the task.
//
// A batch belongs to one step of one round and generation. One of another step is never taken for
// it: its receiver waits until the transport's deadline, and names the sender.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/example_form.h"
#include "wan/transport/transport.h"

namespace farstep {

// The step that a batch is for.
struct BatchStep {
  int64_t generation = 0, round = 1;
  int64_t step = 1;  // of the round
};

using Transfers = std::vector<std::unique_ptr<wan::Transfer>>;

// Starts to send a batch to the site with rank `to`. Its memory belongs to the transport until the
// transfers have been waited for. Throws PeerError.
Transfers send_batch(wan::Transport& transport, int to, const BatchStep& step,
                     const BatchView& batch);

// A batch that is being received. Belongs to one thread; the transport must outlive it.
class IncomingBatch {
 public:
  // Starts to receive `examples` of this form from the site with rank `from`. Throws PeerError.
  IncomingBatch(wan::Transport& transport, int from, const BatchStep& step, const ExampleForm& form,
                int64_t examples);

  // Waits for the batch, and returns it; once. Throws PeerError that names the step if it does not
  // come, or has values that no such example has.
  Batch wait();

 private:
  wan::Transport& transport_;
  const int from_;
  const BatchStep step_;
  const ExampleForm form_;
  BlankBatch blank_;
  Transfers transfers_;  // end before their memory
};

}  // namespace farstep
