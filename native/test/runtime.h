// ONNX Runtime, opened at run time by those who test and measure the op library.
#ifndef ROPE_TEST_RUNTIME_H_
#define ROPE_TEST_RUNTIME_H_

#include <onnxruntime_c_api.h>

#include <string>

namespace rope::test {

// Opens the runtime once for the process. Returns the error text, empty when
// all went well, as all of these do.
std::string OpenRuntime(const char* path);

const OrtApi& Ort();
const char* RuntimeVersion();
OrtMemoryInfo* CpuMemory();

// Takes a status and returns what it says.
std::string Text(OrtStatusPtr status);

// Makes a session of one model with the op library registered.
std::string CreateSession(const std::string& model, const std::string& library, int threads,
                          OrtSession** session);

}  // namespace rope::test

#endif  // ROPE_TEST_RUNTIME_H_
