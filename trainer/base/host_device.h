// Marks functions that a CUDA kernel calls too, so that a CPU's tests run the very same code.
#pragma once

#ifdef __CUDACC__
#define FARSTEP_HOST_DEVICE __host__ __device__
#else
#define FARSTEP_HOST_DEVICE
#endif
