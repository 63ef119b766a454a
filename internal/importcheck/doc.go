// Package importcheck holds the test that keeps the repository's packages from
// depending upwards:
//
//	rope  ←  rewrite  →  onnx
//
// rope knows mathematics and onnx knows files, neither anything of ours besides
// itself; customop knows kernels and neither of them. lm runs models and does not
// rewrite them. Commands may know all.
package importcheck
