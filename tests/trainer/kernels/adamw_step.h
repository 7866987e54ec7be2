// A step of AdamW for the tests of its kernels: the third, with usual rates.
#pragma once

#include "trainer/kernels/adamw.h"

namespace farstep {

inline constexpr AdamWStep kThirdStep{.learning_rate = 0.01F,
                                      .beta1 = 0.9F,
                                      .beta2 = 0.95F,
                                      .epsilon = 1e-8F,
                                      .weight_decay = 0.1F,
                                      .gradient_factor = 1,
                                      .correction1 = 0.271F,
                                      .correction2 = 0.142625F};

}  // namespace farstep
