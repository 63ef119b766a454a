// What the kernels need of a compiler: under nvcc their functions run on the
// device, under any other compiler on the host, where a test runs them.
#ifndef ROPE_CUDA_DEVICE_H_
#define ROPE_CUDA_DEVICE_H_

#ifdef __CUDACC__
#define ROPE_DEVICE __device__ __forceinline__
#define ROPE_DEVICE_HOST __device__ __host__ __forceinline__  // the host plans with it, too
// Before loops over what a thread keeps in registers, which have no addresses.
#define ROPE_UNROLL _Pragma("unroll")
#define ROPE_ROLLED _Pragma("unroll 1")  // before loops that are long, and rarely run
#else
#define ROPE_DEVICE inline
#define ROPE_DEVICE_HOST inline
#define ROPE_UNROLL
#define ROPE_ROLLED
#endif

#endif  // ROPE_CUDA_DEVICE_H_
