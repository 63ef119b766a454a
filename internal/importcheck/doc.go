// Package importcheck says what each folder of this repository may import, of its own packages
// and of others. Its test keeps imports pointing one way:
//
//	cmd  →  validate, modeldiff, audit  →  rewrite  →  rope, onnx, customop  →  internal
//	cmd  →  lm  →  onnx, customop  →  internal
//
// Rules is the list. The table in CONTRIBUTING.md is made from it.
package importcheck
