// Package msmatmul reads com.microsoft FusedMatMul, which ONNX Runtime's
// optimizer leaves in the models that it saves, as Transpose, MatMul and Mul:
//
//	alpha · A′ · B′
//
// A′ is A with its first dimension moved behind the other batch dimensions
// where transBatchA is set, [d₀, d₁ … dₙ₋₁, c] → [d₁ … d₀, c], and with its last
// two dimensions exchanged where transA is set, in this order; B′ likewise.
//
// Refused are operands that are transposed and of which the graph does not tell
// how many dimensions they have.
package msmatmul
