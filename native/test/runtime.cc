#include "runtime.h"

#include <dlfcn.h>

namespace rope::test {
namespace {

const OrtApi* g_ort = nullptr;
const char* g_version = "";
OrtEnv* g_env = nullptr;
OrtMemoryInfo* g_memory = nullptr;

}  // namespace

std::string OpenRuntime(const char* path) {
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) return std::string("cannot open ONNX Runtime: ") + dlerror();
  using GetBase = const OrtApiBase* (*)();
  const auto get_base = reinterpret_cast<GetBase>(dlsym(library, "OrtGetApiBase"));
  if (get_base == nullptr) return std::string(path) + " is no ONNX Runtime library";
  g_version = get_base()->GetVersionString();
  g_ort = get_base()->GetApi(18);
  if (g_ort == nullptr) return std::string("ONNX Runtime ") + g_version + " is older than 1.18";
  // Errors come back as texts; logged as well, they would be there twice.
  std::string error = Text(g_ort->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "rope", &g_env));
  if (error.empty()) {
    error = Text(g_ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &g_memory));
  }
  return error;
}

const OrtApi& Ort() { return *g_ort; }
const char* RuntimeVersion() { return g_version; }
OrtMemoryInfo* CpuMemory() { return g_memory; }

std::string Text(OrtStatusPtr status) {
  if (status == nullptr) return {};
  std::string text = Ort().GetErrorMessage(status);
  Ort().ReleaseStatus(status);
  return text.empty() ? "?" : text;
}

std::string CreateSession(const std::string& model, const std::string& library, int threads,
                          OrtSession** session) {
  OrtSessionOptions* options = nullptr;
  std::string error = Text(Ort().CreateSessionOptions(&options));
  if (!error.empty()) return error;
  error = Text(Ort().SetIntraOpNumThreads(options, threads));
  // Threads that wait for more work would take the cores of the session that runs next.
  if (error.empty()) {
    error = Text(Ort().AddSessionConfigEntry(options, "session.force_spinning_stop", "1"));
  }
  if (error.empty()) error = Text(Ort().RegisterCustomOpsLibrary_V2(options, library.c_str()));
  if (error.empty()) {
    error = Text(Ort().CreateSessionFromArray(g_env, model.data(), model.size(), options, session));
  }
  Ort().ReleaseSessionOptions(options);
  return error;
}

}  // namespace rope::test
