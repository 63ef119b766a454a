#ifndef ROPE_CUDA_TEST_PRODUCTS_TEST_H_
#define ROPE_CUDA_TEST_PRODUCTS_TEST_H_

namespace rope::cuda::test {

// The emulated products of warpgroups by themselves: what they compute, and that each thing
// which they must be told or must wait for is missed where it is missing.
void TestProducts();

}  // namespace rope::cuda::test

#endif  // ROPE_CUDA_TEST_PRODUCTS_TEST_H_
