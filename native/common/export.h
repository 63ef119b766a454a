// What the library shows to those who load it; everything else stays inside.
#ifndef ROPE_EXPORT_H_
#define ROPE_EXPORT_H_

#ifdef _WIN32
#define ROPE_EXPORT extern "C" __declspec(dllexport)
#else
#define ROPE_EXPORT extern "C" __attribute__((visibility("default")))
#endif

#endif  // ROPE_EXPORT_H_
