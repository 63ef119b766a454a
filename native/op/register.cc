// The function that ONNX Runtime calls, and what the library says of itself.
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "cpu_target.h"
#include "export.h"
#include "numbers.h"
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
template <Numbers kNumbers>
OrtCustomOpDomain* Domain(const OrtApi& api, const char* version) {
  static const std::vector<OrtCustomOp> ops = LibraryOps(CanInferShapes(version), kNumbers);
  static OrtCustomOpDomain* const domain = [&] {
    OrtCustomOpDomain* made = nullptr;
    Check(api, api.CreateCustomOpDomain(spec::kDomain, &made), "CreateCustomOpDomain");
    for (const OrtCustomOp& op : ops) {
      Check(api, api.CustomOpDomain_Add(made, &op), "CustomOpDomain_Add");
    }
    return made;
  }();
  return domain;
}

// Where a session has asked for numbers to lie.
Numbers NumbersOf(const OrtApi& api, const OrtSessionOptions* options) {
  int has = 0;
  Check(api, api.HasSessionConfigEntry(options, kDeviceInputs, &has), "HasSessionConfigEntry");
  if (has == 0) return Numbers::kOnHost;
  char value[8] = {};
  size_t size = sizeof(value);
  const std::string error =
      TextOf(api, api.GetSessionConfigEntry(options, kDeviceInputs, value, &size));
  if (error.empty() && std::string(value) == "0") return Numbers::kOnHost;
  if (error.empty() && std::string(value) == "1") return Numbers::kOnDevice;
  throw Failure(std::string("the session's entry ") + kDeviceInputs +
                " must be 1 (lengths, masks, positions and ids lie on the device) or 0");
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
    std::call_once(once, [&] { rope::SetApi(api); });
    const bool on_device = rope::NumbersOf(*api, options) == rope::Numbers::kOnDevice;
    const char* version = base->GetVersionString();
    OrtCustomOpDomain* const domain = on_device
                                          ? rope::Domain<rope::Numbers::kOnDevice>(*api, version)
                                          : rope::Domain<rope::Numbers::kOnHost>(*api, version);
    rope::Check(*api, api->AddCustomOpDomain(options, domain), "AddCustomOpDomain");
  });
}

// By the mark a reader of the file knows it. It is shown, so that no linker leaves it out.
ROPE_EXPORT const char* RopeMark() { return rope::spec::kMark; }

ROPE_EXPORT const char* RopeCpuTarget() { return rope::CpuTarget(); }
