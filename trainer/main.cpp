// farstep: the commands that need no LibTorch. For the others it becomes farstep-torch.
#include "trainer/commands/program.h"
#include "trainer/commands/torch_program.h"

int main(int argc, char** argv) {
  return farstep::run_program(argc, argv, farstep::become_torch_program);
}
