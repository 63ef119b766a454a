// Where the op finds the numbers of a call that say which keys its queries see.
#ifndef ROPE_NUMBERS_H_
#define ROPE_NUMBERS_H_

namespace rope {

// Positions, lengths, masks and document ids.
enum class Numbers {
  kOnHost,    // which checks them
  kOnDevice,  // which the host cannot read: it checks shapes alone
};

// The entry of a session's options that asks for numbers on the device, with the value 1; before
// the library is registered.
inline constexpr char kDeviceInputs[] = "rope.device_inputs";

}  // namespace rope

#endif  // ROPE_NUMBERS_H_
