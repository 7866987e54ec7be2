// Marks functions that CUDA kernels call too, so that tests on a CPU run the same code.
#pragma once

#ifdef __CUDACC__
#define FARSTEP_HOST_DEVICE __host__ __device__
#else
#define FARSTEP_HOST_DEVICE
#endif
