// The embedding: one row of a table for every token.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

namespace farstep {

// Writes to x (rows, width) the rows of table (vocabulary, width) that the tokens select.
void embed(const float* table, const int64_t* tokens, int64_t rows, int64_t width, float* x);

// Adds columns `begin` to `end` of every row of x_gradient (rows, width) to its token's row of
// table_gradient (vocabulary, width), in order of the rows. Threads divide the columns, so the bits
// do not depend on the number of threads.
void embed_backward(const float* x_gradient, const int64_t* tokens, int64_t rows, int64_t width,
                    int64_t begin, int64_t end, float* table_gradient);

}  // namespace farstep
