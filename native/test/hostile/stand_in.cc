#include "stand_in.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "memory.h"
#include "stand_in_shapes.h"
#include "threads.h"

struct OrtMemoryInfo {};
struct OrtValue {
  rope::hostile::Shape shape;
  rope::hostile::Memory* memory;
};
struct OrtKernelInfo {
  const rope::hostile::Case& of;
};

namespace rope::hostile {
namespace {

constexpr size_t kMostBytes = 1 << 26;  // of one output or block of working memory

struct Host : OrtAllocator {
  std::atomic<int64_t> allocations{-1};  // that are still granted; negative: all
  std::atomic<int64_t> in_use{0};
};

}  // namespace
}  // namespace rope::hostile

struct OrtKernelContext {
  const rope::hostile::Case& of;
  rope::hostile::Order order;
  uint8_t fill;
  rope::hostile::Host host;
  std::vector<std::unique_ptr<rope::hostile::Memory>> memories;
  std::vector<std::unique_ptr<OrtValue>> inputs, outputs;
  std::string mistake;
};

namespace rope::hostile {
namespace {

OrtStatusPtr Failed(const std::string& text) { return new OrtStatus{ORT_FAIL, text}; }

OrtStatusPtr ORT_API_CALL CreateStatus(OrtErrorCode code, const char* text) noexcept {
  return new OrtStatus{code, text};
}
const char* ORT_API_CALL GetErrorMessage(const OrtStatus* status) noexcept {
  return status->text.c_str();
}
void ORT_API_CALL ReleaseStatus(OrtStatus* status) noexcept { delete status; }

// Copies a text with its end as the API does: without room, its size.
OrtStatusPtr GiveText(const std::string& text, char* out, size_t* size) {
  const size_t wanted = text.size() + 1;
  if (out != nullptr && *size < wanted) return Failed("too little room for a text");
  if (out != nullptr) std::memcpy(out, text.c_str(), wanted);
  *size = wanted;
  return nullptr;
}

OrtStatusPtr ORT_API_CALL NodeName(const OrtKernelInfo*, char* out, size_t* size) noexcept {
  return GiveText("hostile", out, size);
}
OrtStatusPtr ORT_API_CALL InputCountOf(const OrtKernelInfo* info, size_t* count) noexcept {
  *count = info->of.inputs.size();
  return nullptr;
}
OrtStatusPtr ORT_API_CALL OutputCountOf(const OrtKernelInfo* info, size_t* count) noexcept {
  *count = info->of.outputs.size();
  return nullptr;
}
OrtStatusPtr ORT_API_CALL InputName(const OrtKernelInfo* info, size_t i, char* out,
                                    size_t* size) noexcept {
  return GiveText(info->of.inputs[i].present ? "input" : "", out, size);
}
OrtStatusPtr ORT_API_CALL OutputName(const OrtKernelInfo* info, size_t i, char* out,
                                     size_t* size) noexcept {
  return GiveText(info->of.outputs[i].wanted ? "output" : "", out, size);
}

const Attribute* FindKind(const OrtKernelInfo* info, const char* name, Attribute::Kind kind) {
  const Attribute* a = info->of.Find(name);
  return a == nullptr || a->kind != kind ? nullptr : a;
}
OrtStatusPtr ORT_API_CALL AttributeInt(const OrtKernelInfo* info, const char* name,
                                       int64_t* out) noexcept {
  const Attribute* a = FindKind(info, name, Attribute::kOfInt);
  if (a == nullptr) return Failed("no such int");
  *out = a->i;
  return nullptr;
}
OrtStatusPtr ORT_API_CALL AttributeFloat(const OrtKernelInfo* info, const char* name,
                                         float* out) noexcept {
  const Attribute* a = FindKind(info, name, Attribute::kOfFloat);
  if (a == nullptr) return Failed("no such float");
  *out = a->f;
  return nullptr;
}
OrtStatusPtr ORT_API_CALL AttributeString(const OrtKernelInfo* info, const char* name, char* out,
                                          size_t* size) noexcept {
  const Attribute* a = FindKind(info, name, Attribute::kOfString);
  return a == nullptr ? Failed("no such string") : GiveText(a->s, out, size);
}
// As the runtime does, an attribute of another type is given as an empty list.
template <typename N>
OrtStatusPtr GiveList(const std::vector<N>& values, N* out, size_t* size) {
  if (out != nullptr && *size < values.size()) return Failed("too little room for a list");
  if (out != nullptr) std::copy(values.begin(), values.end(), out);
  *size = values.size();
  return nullptr;
}
OrtStatusPtr ORT_API_CALL AttributeInts(const OrtKernelInfo* info, const char* name, int64_t* out,
                                        size_t* size) noexcept {
  const Attribute* a = info->of.Find(name);
  return a == nullptr ? Failed("no such ints") : GiveList(a->ints, out, size);
}
OrtStatusPtr ORT_API_CALL AttributeFloats(const OrtKernelInfo* info, const char* name, float* out,
                                          size_t* size) noexcept {
  const Attribute* a = info->of.Find(name);
  return a == nullptr ? Failed("no such floats") : GiveList(a->floats, out, size);
}

OrtStatusPtr ORT_API_CALL InputCount(const OrtKernelContext* context, size_t* count) noexcept {
  *count = context->inputs.size();
  return nullptr;
}
OrtStatusPtr ORT_API_CALL OutputCount(const OrtKernelContext* context, size_t* count) noexcept {
  *count = context->of.outputs.size();
  return nullptr;
}
OrtStatusPtr ORT_API_CALL GetInput(const OrtKernelContext* context, size_t i,
                                   const OrtValue** value) noexcept {
  *value = context->inputs[i].get();
  return nullptr;
}

OrtStatusPtr ORT_API_CALL GetOutput(OrtKernelContext* context, size_t i, const int64_t* dims,
                                    size_t rank, OrtValue** value) noexcept {
  *value = nullptr;
  const Output& output = context->of.outputs[i];
  if (!output.wanted) return nullptr;
  Shape shape{OutputElement(context->of, i), {dims, dims + rank}, {}};
  for (const int64_t dim : shape.dims) {
    if (dim < 0) context->mistake = "an output of a negative size";
  }
  const int64_t count = context->mistake.empty() ? CountOf(shape.dims) : 0;
  const auto most = static_cast<int64_t>(kMostBytes);
  if (count < 0 || count > most) return Failed("the host gives no output that large");
  const size_t bytes = static_cast<size_t>(count) * SizeOf(shape.element);
  const OrtValue* past =
      output.same_as < 0 ? nullptr : context->inputs[static_cast<size_t>(output.same_as)].get();
  Memory* memory = past != nullptr && past->memory->size() == bytes ? past->memory : nullptr;
  if (memory == nullptr) {
    const size_t front = context->of.inputs[0].front * SizeOf(shape.element);
    context->memories.push_back(std::make_unique<Memory>(bytes, front, context->fill));
    memory = context->memories.back().get();
  }
  context->outputs[i] = std::make_unique<OrtValue>(OrtValue{std::move(shape), memory});
  *value = context->outputs[i].get();
  return nullptr;
}

OrtStatusPtr ORT_API_CALL TypeAndShape(const OrtValue* value,
                                       OrtTensorTypeAndShapeInfo** info) noexcept {
  *info = new OrtTensorTypeAndShapeInfo{value->shape};
  return nullptr;
}
OrtStatusPtr ORT_API_CALL MutableData(OrtValue* value, void** data) noexcept {
  // What has no elements may have no address.
  const bool nowhere = value->memory->size() == 0 && value->memory->front() > 0;
  *data = nowhere ? nullptr : value->memory->data();
  return nullptr;
}

OrtStatusPtr ORT_API_CALL CpuMemoryInfo(OrtAllocatorType, OrtMemType,
                                        OrtMemoryInfo** info) noexcept {
  *info = new OrtMemoryInfo();
  return nullptr;
}
void ORT_API_CALL ReleaseMemoryInfo(OrtMemoryInfo* info) noexcept { delete info; }

void* ORT_API_CALL Allocate(OrtAllocator* allocator, size_t bytes) {
  auto* host = static_cast<Host*>(allocator);
  if (bytes > kMostBytes || (host->allocations >= 0 && host->allocations-- == 0)) {
    host->allocations = host->allocations < 0 ? -1 : 0;
    return nullptr;
  }
  void* memory = std::malloc(bytes);
  ++host->in_use;
  // What was left there must not matter.
  std::memset(memory, 0xFB, bytes);
  return memory;
}
void ORT_API_CALL Free(OrtAllocator* allocator, void* memory) {
  --static_cast<Host*>(allocator)->in_use;
  std::free(memory);
}
OrtStatusPtr ORT_API_CALL GetAllocator(const OrtKernelContext* context, const OrtMemoryInfo*,
                                       OrtAllocator** out) noexcept {
  *out = const_cast<Host*>(&context->host);
  return nullptr;
}
void ORT_API_CALL ReleaseAllocator(OrtAllocator*) noexcept {}

OrtStatusPtr ORT_API_CALL ParallelFor(const OrtKernelContext* context, void (*fn)(void*, size_t),
                                      size_t total, size_t, void* data) noexcept {
  if (context->order == Order::kTwoThreads) {
    static Helper helper;
    helper.Run(total, fn, data);
  } else {
    const bool forward = context->order == Order::kForward;
    for (size_t i = 0; i < total; ++i) fn(data, forward ? i : total - 1 - i);
  }
  return nullptr;
}

// The library's ops, as it adds them.
OrtStatusPtr ORT_API_CALL CreateDomain(const char*, OrtCustomOpDomain** out) noexcept {
  static std::vector<const OrtCustomOp*> ops;
  *out = reinterpret_cast<OrtCustomOpDomain*>(&ops);
  return nullptr;
}
OrtStatusPtr ORT_API_CALL AddOp(OrtCustomOpDomain* domain, const OrtCustomOp* op) noexcept {
  reinterpret_cast<std::vector<const OrtCustomOp*>*>(domain)->push_back(op);
  return nullptr;
}
OrtStatusPtr ORT_API_CALL AddDomain(OrtSessionOptions* options,
                                    OrtCustomOpDomain* domain) noexcept {
  *reinterpret_cast<std::vector<const OrtCustomOp*>*>(options) =
      *reinterpret_cast<std::vector<const OrtCustomOp*>*>(domain);
  return nullptr;
}

// Its sessions have no entries.
OrtStatusPtr ORT_API_CALL HasEntry(const OrtSessionOptions*, const char*, int* has) noexcept {
  *has = 0;
  return nullptr;
}

OrtApi MakeApi() {
  OrtApi api{};
  api.CreateStatus = CreateStatus;
  api.GetErrorMessage = GetErrorMessage;
  api.ReleaseStatus = ReleaseStatus;
  api.KernelInfo_GetNodeName = NodeName;
  api.KernelInfo_GetInputCount = InputCountOf;
  api.KernelInfo_GetOutputCount = OutputCountOf;
  api.KernelInfo_GetInputName = InputName;
  api.KernelInfo_GetOutputName = OutputName;
  api.KernelInfoGetAttribute_int64 = AttributeInt;
  api.KernelInfoGetAttribute_float = AttributeFloat;
  api.KernelInfoGetAttribute_string = AttributeString;
  api.KernelInfoGetAttributeArray_int64 = AttributeInts;
  api.KernelInfoGetAttributeArray_float = AttributeFloats;
  api.KernelContext_GetInputCount = InputCount;
  api.KernelContext_GetOutputCount = OutputCount;
  api.KernelContext_GetInput = GetInput;
  api.KernelContext_GetOutput = GetOutput;
  api.GetTensorTypeAndShape = TypeAndShape;
  api.GetTensorMutableData = MutableData;
  api.CreateCpuMemoryInfo = CpuMemoryInfo;
  api.ReleaseMemoryInfo = ReleaseMemoryInfo;
  api.KernelContext_GetAllocator = GetAllocator;
  api.ReleaseAllocator = ReleaseAllocator;
  api.KernelContext_ParallelFor = ParallelFor;
  api.CreateCustomOpDomain = CreateDomain;
  api.CustomOpDomain_Add = AddOp;
  api.AddCustomOpDomain = AddDomain;
  api.HasSessionConfigEntry = HasEntry;
  AddShapeFunctions(api);
  return api;
}

const OrtApi* ORT_API_CALL GetApi(uint32_t) noexcept {
  static const OrtApi api = MakeApi();
  return &api;
}
const char* ORT_API_CALL Version() noexcept { return "1.31.0"; }

std::string Taken(OrtStatusPtr status) {
  if (status == nullptr) return {};
  std::string text = status->text.empty() ? "an error without a sentence" : status->text;
  delete status;
  return text;
}

void Bind(OrtKernelContext& context) {
  const Case& c = context.of;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Tensor& t = c.inputs[i];
    context.inputs.emplace_back();
    if (!t.present) continue;
    // A buffer that is an output as well has room for that.
    size_t bytes = t.bytes.size();
    for (const Output& o : c.outputs) {
      if (o.same_as != static_cast<int>(i) || o.promised.empty()) continue;
      bytes = std::max(bytes, static_cast<size_t>(CountOf(o.promised)) * SizeOf(t.element));
    }
    context.memories.push_back(
        std::make_unique<Memory>(bytes, t.front * SizeOf(t.element), context.fill));
    std::copy(t.bytes.begin(), t.bytes.end(), context.memories.back()->data());
    context.inputs.back() = std::make_unique<OrtValue>(
        OrtValue{Shape{t.element, t.shape, {}}, context.memories.back().get()});
  }
  context.outputs.resize(c.outputs.size());
}

// What holds of memory when a call is over, whatever it gave.
std::string MistakeOf(const OrtKernelContext& context) {
  if (!context.mistake.empty()) return context.mistake;
  if (context.host.in_use != 0) return "working memory is not given back";
  for (const auto& memory : context.memories) {
    if (!memory->FrontIsWhole()) return "memory in front of a tensor has changed";
  }
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const Tensor& t = context.of.inputs[i];
    const bool shared =
        std::any_of(context.of.outputs.begin(), context.of.outputs.end(),
                    [&](const Output& o) { return o.same_as == static_cast<int>(i); });
    if (!t.present || shared) continue;
    if (!std::equal(t.bytes.begin(), t.bytes.end(), context.inputs[i]->memory->data())) {
      return "input " + std::to_string(i) + " has changed";
    }
  }
  return {};
}

}  // namespace

Library::Library(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr) {
    error_ = dlerror();
    return;
  }
  using Register = OrtStatusPtr (*)(OrtSessionOptions*, const OrtApiBase*);
  const auto add = reinterpret_cast<Register>(dlsym(library, "RegisterCustomOps"));
  if (add == nullptr) {
    error_ = path + " is no op library";
    return;
  }
  static const OrtApiBase base{GetApi, Version};
  error_ = Taken(add(reinterpret_cast<OrtSessionOptions*>(&ops_), &base));
}

const OrtCustomOp* Library::Find(const Case& c) const {
  for (const OrtCustomOp* op : ops_) {
    if (c.op != op->GetName(op) || op->GetInputType(op, 0) != c.element) continue;
    if (c.op == "Rotary" || op->GetInputType(op, kPastKeyInput) == c.cache) return op;
  }
  return nullptr;
}

Outcome Library::Run(const Case& c, Order order, uint8_t fill) const {
  Outcome outcome;
  const OrtCustomOp* op = Find(c);
  if (op == nullptr) {
    outcome.mistake = "no such op";
    return outcome;
  }
  const std::vector<int64_t> inferred = InferShape(*op, c, outcome.mistake);
  const OrtKernelInfo info{c};
  void* kernel = nullptr;
  outcome.error = Taken(op->CreateKernelV2(op, GetApi(0), &info, &kernel));
  outcome.node_refused = !outcome.error.empty();
  if (outcome.node_refused) return outcome;
  OrtKernelContext context{c, order, fill, {}, {}, {}, {}, {}};
  static_cast<OrtAllocator&>(context.host) = OrtAllocator{};
  context.host.Alloc = Allocate;
  context.host.Free = Free;
  context.host.allocations = c.allocations;
  Bind(context);
  outcome.error = Taken(op->KernelComputeV2(kernel, &context));
  op->KernelDestroy(kernel);
  if (outcome.mistake.empty()) outcome.mistake = MistakeOf(context);
  if (!outcome.error.empty()) return outcome;
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    Tensor t;
    if (context.outputs[i] != nullptr) {
      t = {context.outputs[i]->shape.element, context.outputs[i]->shape.dims,
           context.outputs[i]->memory->Copy(), true, 0};
    }
    if (i == 0 && !Agree(inferred, t.shape))
      outcome.mistake = "output 0 has another shape than inferred";
    outcome.outputs.push_back(std::move(t));
  }
  return outcome;
}

}  // namespace rope::hostile
