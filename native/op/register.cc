// The function that ONNX Runtime calls, and what the library says of itself.
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "cpu_target.h"
#include "export.h"
#include "ort_api.h"
#include "rotary_attention.h"
#include "spec.gen.h"

namespace rope {
namespace {

// Runtimes before 1.24 crash when a node with a shape function skips an optional input.
bool CanInferShapes(const char* version) {
  char* end = nullptr;
  const long major = std::strtol(version, &end, 10);
  const long minor = *end == '.' ? std::strtol(end + 1, nullptr, 10) : 0;
  return major > 1 || (major == 1 && minor >= 24);
}

// The ops, one for each name, element type and device, and their domain live as long as the
// process: sessions share them.
OrtCustomOpDomain* MakeDomain(const OrtApi& api, const char* version) {
  SetApi(&api);
  static const std::vector<OrtCustomOp> ops = LibraryOps(CanInferShapes(version));
  OrtCustomOpDomain* domain = nullptr;
  Check(api, api.CreateCustomOpDomain(spec::kDomain, &domain), "CreateCustomOpDomain");
  for (const OrtCustomOp& op : ops) {
    Check(api, api.CustomOpDomain_Add(domain, &op), "CustomOpDomain_Add");
  }
  return domain;
}

OrtStatusPtr TooOld(const OrtApiBase* base) {
  const OrtApi* oldest = base->GetApi(1);
  if (oldest == nullptr) return nullptr;
  const std::string text = std::string("librope_ops needs ONNX Runtime 1.") +
                           std::to_string(kApiVersion) + " or newer; this is " +
                           base->GetVersionString();
  return oldest->CreateStatus(ORT_FAIL, text.c_str());
}

}  // namespace
}  // namespace rope

ROPE_EXPORT OrtStatusPtr ORT_API_CALL RegisterCustomOps(OrtSessionOptions* options,
                                                        const OrtApiBase* base) {
  const OrtApi* api = base->GetApi(rope::kApiVersion);
  if (api == nullptr) return rope::TooOld(base);
  return rope::Guarded(*api, [&] {
    static std::once_flag once;
    static OrtCustomOpDomain* domain = nullptr;
    std::call_once(once, [&] { domain = rope::MakeDomain(*api, base->GetVersionString()); });
    rope::Check(*api, api->AddCustomOpDomain(options, domain), "AddCustomOpDomain");
  });
}

// By the mark a reader of the file knows it. It is shown, so that no linker leaves it out.
ROPE_EXPORT const char* RopeMark() { return rope::spec::kMark; }

ROPE_EXPORT const char* RopeCpuTarget() { return rope::CpuTarget(); }
