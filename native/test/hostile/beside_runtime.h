// The same case in a real ONNX Runtime, whose stand-in is not to be believed alone.
#ifndef ROPE_HOSTILE_BESIDE_RUNTIME_H_
#define ROPE_HOSTILE_BESIDE_RUNTIME_H_

#include <filesystem>
#include <string>

#include "case.h"
#include "stand_in.h"

namespace rope::hostile {

// A copy of a library's file: a process that opens it has the library twice, with two runtimes.
class LibraryCopy {
 public:
  explicit LibraryCopy(const std::string& library);
  ~LibraryCopy();
  LibraryCopy(const LibraryCopy&) = delete;
  LibraryCopy& operator=(const LibraryCopy&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Runs a case in the runtime that test::OpenRuntime has opened, and compares with what the stand-in
// gave. The text says what differs. `alone` says that the runtime refused the model or the call
// before the op saw it.
std::string BesideRuntime(const Case& c, const Outcome& stand_in, const std::string& library,
                          bool& alone);

}  // namespace rope::hostile

#endif  // ROPE_HOSTILE_BESIDE_RUNTIME_H_
