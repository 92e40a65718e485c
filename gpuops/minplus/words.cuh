// The types of elements and words in a kernel that is compiled for one arithmetic.
//
// Macros: ARITHMETIC, a struct of arithmetic.cuh.
#pragma once

#include "arithmetic.cuh"

using Element = ARITHMETIC::Element;
using Word = ARITHMETIC::Word;
constexpr int LANES = ARITHMETIC::LANES;
