// Cases drawn at random: valid ones, and changes that make hostile ones of them.
#ifndef ROPE_HOSTILE_DRAW_H_
#define ROPE_HOSTILE_DRAW_H_

#include "case.h"
#include "random.h"

namespace rope::hostile {

// A valid call of RotaryAttention or of Rotary.
Case DrawAttention(Random& random);
Case DrawRotary(Random& random);

// Changes that the op computes all the same, or refuses with a sentence.
void Distort(Case& c, Random& random);

// A case of either op; of four one is changed.
Case Draw(uint64_t seed);

// A tensor of small finite numbers, or one of whole numbers.
Tensor DrawNumbers(Random& random, int element, std::vector<int64_t> shape);
Tensor OfInts(int element, std::vector<int64_t> shape, const std::vector<int64_t>& values);

// Puts infinities, NaN, denormal and huge numbers into a tensor of floats.
void Spoil(Tensor& t, Random& random);

// Writes the shapes that the documentation promises for a valid case.
void Promise(Case& c);

}  // namespace rope::hostile

#endif  // ROPE_HOSTILE_DRAW_H_
